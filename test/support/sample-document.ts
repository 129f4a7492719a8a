// Owns one document that uses every combinator of the codec, and an arbitrary that makes values of it. Must stay
// within what the codec itself accepts, so that every value can be written.
import fc from 'fast-check'
import {
  array,
  boolean,
  bytes,
  digest,
  identifier,
  type Infer,
  integer,
  json,
  literal,
  nullable,
  object,
  oneOf,
  publicKeyHex,
  signatureHex,
  tagged,
  text,
  textOrObject,
} from '../../protocol/codec.js'
import type { JsonValue } from '../../protocol/json.js'

const Step = tagged('kind', {
  wait: object({ milliseconds: integer({ min: 0, max: 1000 }) }),
  send: object({ body: bytes({ max: 64 }), zone: text({ maxBytes: 8 }) }),
  stop: object({}),
})

export const SampleDocument = object(
  {
    schema: literal('chio.sample.v1'),
    name: identifier(40),
    note: text({ maxBytes: 60 }),
    count: integer({ min: -5, max: Number.MAX_SAFE_INTEGER }),
    done: boolean(),
    digest: digest(),
    signature: signatureHex(),
    signer: publicKeyHex(),
    secret: nullable(bytes({ min: 1, max: 300 })),
    steps: array(Step, { max: 4 }),
    mode: oneOf('slow', 'fast', 'größer'),
    hold: textOrObject(
      oneOf('unknown', 'held'),
      object({ captured: object({ index: integer({ min: 0, max: 9 }) }) }),
    ),
  },
  { optional: { extra: json({ maxBytes: 4096 }), alias: identifier(20) } },
)
export type SampleDocument = Infer<typeof SampleDocument>

const hex = (digits: number): fc.Arbitrary<string> =>
  fc.string({
    unit: fc.constantFrom(...Array.from('0123456789abcdef')),
    minLength: digits,
    maxLength: digits,
  })
const word = fc.string({ unit: 'grapheme', maxLength: 60 })
const name = (maximumBytes: number): fc.Arbitrary<string> =>
  word.map(value => value.trim()).filter(value => isIdentifier(value, maximumBytes))

function isIdentifier(value: string, maximumBytes: number): boolean {
  const length = Buffer.byteLength(value)
  return length > 0 && length <= maximumBytes && !/^\p{White_Space}|\p{White_Space}$|\p{Cc}/u.test(value)
}

const step = fc.oneof(
  fc.record({ kind: fc.constant('wait' as const), milliseconds: fc.nat(1000) }),
  fc.record({
    kind: fc.constant('send' as const),
    body: fc.uint8Array({ maxLength: 64 }),
    zone: word.filter(value => Buffer.byteLength(value) <= 8),
  }),
  fc.record({ kind: fc.constant('stop' as const) }),
)

/** JSON that the codec accepts: no lone surrogates, no unsafe integers, no -0, no __proto__. */
const extra = fc
  .jsonValue({ maxDepth: 4 })
  .map(value => JSON.parse(JSON.stringify(value)) as JsonValue)
  .filter(value => isPlain(value) && JSON.stringify(value).length < 1000)

function isPlain(value: JsonValue): boolean {
  let plain = !JSON.stringify(value).includes('__proto__')
  JSON.parse(JSON.stringify(value), (_key, part: unknown) => {
    if (
      typeof part === 'number' &&
      Number.isInteger(part) &&
      !Number.isSafeInteger(part) &&
      Math.abs(part) < 1e21
    ) {
      plain = false
    }
    return part
  })
  return plain
}

export const sampleDocument: fc.Arbitrary<SampleDocument> = fc.record(
  {
    schema: fc.constant('chio.sample.v1' as const),
    name: name(40),
    note: fc
      .oneof(word, fc.string({ unit: 'binary', maxLength: 20 }))
      .filter(value => Buffer.byteLength(value) <= 60 && !/\p{Surrogate}/u.test(value)),
    count: fc.oneof(fc.maxSafeNat(), fc.integer({ min: -5, max: 100 })),
    done: fc.boolean(),
    digest: hex(64),
    signature: hex(128),
    signer: hex(64),
    secret: fc.option(fc.uint8Array({ minLength: 1, maxLength: 300 })),
    steps: fc.array(step, { maxLength: 4 }),
    mode: fc.constantFrom('slow' as const, 'fast' as const, 'größer' as const),
    hold: fc.oneof(
      fc.constantFrom('unknown' as const, 'held' as const),
      fc.nat(9).map(index => ({ captured: { index } })),
    ),
    extra,
    alias: name(20),
  },
  {
    requiredKeys: [
      'schema',
      'name',
      'note',
      'count',
      'done',
      'digest',
      'signature',
      'signer',
      'secret',
      'steps',
      'mode',
      'hold',
    ],
  },
)
