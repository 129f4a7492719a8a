// What one execution is evidenced by: digests and commit indexes, never content. v2 is current; v1
// does not authenticate response headers, is readable as history and never accepted as current.
import { array, digest, encode, type Infer, identifier, integer, literal, object } from './codec.js'
import { HeaderField } from './destination.js'
import { domainDigestHex, sha256Hex } from './digest.js'
import { MAXIMUM_HEADER_COUNT, MAXIMUM_INTEGER } from './limits.js'

export const EVIDENCE_SCHEMA_V1 = 'chio.broker-execution-evidence.v1'
export const EVIDENCE_SCHEMA = 'chio.broker-execution-evidence.v2'

const index = integer({ min: 0, max: MAXIMUM_INTEGER })

const shared = {
  attemptId: identifier(),
  authorityCommitIndex: index,
  budgetCommitIndex: index,
  capabilityDigest: digest(),
  holdId: identifier(),
  invocationId: identifier(),
  leaderEpoch: index,
  requestDigest: digest(),
  responseBodySha256: digest(),
  revocationCommitIndex: index,
  revocationSetDigest: digest(),
  upstreamStatus: integer({ min: 100, max: 599 }),
}

export const ExecutionEvidenceV1 = object({ ...shared, schema: literal(EVIDENCE_SCHEMA_V1) })
export type ExecutionEvidenceV1 = Infer<typeof ExecutionEvidenceV1>

export const ExecutionEvidence = object({
  ...shared,
  responseHeadersSha256: digest(),
  schema: literal(EVIDENCE_SCHEMA),
})
export type ExecutionEvidence = Infer<typeof ExecutionEvidence>

/** Digest of the returned header list: sanitized and sorted. */
export function responseHeadersDigest(headers: readonly HeaderField[]): string {
  const canonical = encode(array(HeaderField, { max: MAXIMUM_HEADER_COUNT }), [...headers])
  return domainDigestHex('chio.broker-response-headers.v1', canonical)
}

export function responseBodyDigest(body: Uint8Array): string {
  return sha256Hex(body)
}
