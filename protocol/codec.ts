// Owns the one door to the combinators that describe a document once and both read and write it. They read
// canonical bytes only and write canonical bytes only, so what was decoded encodes to the bytes that were
// received. Must never skip an unknown member or fill in a missing one.
// Source: RFC 8785; the broker protocol's encoding rules, section 0.

export { type Codec, decode, encode, type Infer, isSameDocument } from './document-codec.js'
export { type ObjectCodec, object, refine, tagged, textOrObject } from './codec-object.js'
export type { DocumentSchema } from './document-schema.js'
export { decodeSliced, encodeSliced, type YieldNow } from './codec-sliced.js'
export {
  array,
  boolean,
  bytes,
  digest,
  identifier,
  integer,
  json,
  literal,
  nullable,
  oneOf,
  pattern,
  publicKeyHex,
  signatureHex,
  text,
} from './codec-values.js'
