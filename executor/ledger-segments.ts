// Owns the capacity of a ledger: what it was provisioned with, and the segments that its executor signed since, each
// naming what came before it. All of them lie in the one file, so that no history is ever out of reach.
// Must never: let a segment stand without the one before it, or at another place of the history.
// Source: capacity of the caller execution ledger, 1 to 64 operations a segment.
import { canonicalBytes } from '../protocol/canonical.js'
import { digest, encode, type Infer, integer, literal, object, signatureHex } from '../protocol/codec.js'
import { sha256Hex, toHex } from '../protocol/digest.js'
import { type PublicKey, type SigningKey, verifySignature } from '../protocol/keys.js'
import { MAXIMUM_INTEGER } from '../protocol/limits.js'
import type { Store } from '../store/store.js'
import { genesisOf, type HistoryLine, type HistoryMark } from './ledger-history.js'
import { decodeKept, notAsWritten } from './ledger-refusals.js'
import { MAXIMUM_SEGMENT_OPERATIONS_COUNT } from './ledger-schema.js'

const count = integer({ min: 0, max: MAXIMUM_INTEGER })

const SegmentBody = object({
  /** Claims of all segments before it. */
  claims: count,
  history_digest: digest(),
  max_operations: integer({ min: 1, max: MAXIMUM_SEGMENT_OPERATIONS_COUNT }),
  /** SHA-256 of the header before it; of the configuration for the second segment. */
  previous_digest: digest(),
  schema: literal('chio.caller-executor-segment.v1'),
  segment: integer({ min: 2, max: MAXIMUM_INTEGER }),
  /** Line of the history after which it begins. */
  sequence: count,
  store_id: digest(),
})
export const SegmentHeader = object({ header: SegmentBody, signature: signatureHex() })
export type SegmentHeader = Infer<typeof SegmentHeader>

/** The first segment, as it was provisioned. */
export interface FirstSegment {
  readonly identity: Uint8Array
  readonly maxOperations: number
}

export interface Segments {
  readonly capacity: number
  /** Of the newest header, or of the configuration. */
  readonly digest: string
  readonly segment: number
  /** SHA-256 of each header, as the history tells them. */
  readonly contents: readonly string[]
}

function firstDigest({ identity, maxOperations }: FirstSegment, storeId: string): string {
  const executor = toHex(identity)
  return sha256Hex(canonicalBytes({ executor, max_operations: maxOperations, store_id: storeId }))
}

/**
 * Every segment, verified against the one before it and the history.
 * @throws BrokerError `store_replaced` for one that is missing or another.
 */
export function readSegments(
  store: Store,
  first: FirstSegment,
  history: readonly HistoryLine[],
  key: PublicKey,
): Segments {
  const rows = store.all<{ segment: number; header: Uint8Array }>(
    'SELECT segment, header FROM caller_executor_segments ORDER BY segment',
  )
  const marks = [genesisOf(store.storeId), ...history]
  let known: Segments = {
    capacity: first.maxOperations,
    contents: [],
    digest: firstDigest(first, store.storeId),
    segment: 1,
  }
  for (const row of rows) {
    const signed = decodeKept(SegmentHeader, row.header, 'segment')
    const expected = nextBody(known, store.storeId, pastOf(marks, signed.header.sequence))
    const due = { ...expected, max_operations: signed.header.max_operations }
    const isDue = Buffer.compare(encode(SegmentBody, due), encode(SegmentBody, signed.header)) === 0
    if (!isDue || !verifySignature(key, encode(SegmentBody, signed.header), signed.signature)) {
      throw notAsWritten(`segment ${known.segment + 1} as its executor signed it`, 'another')
    }
    known = after(known, signed)
  }
  return known
}

/** A place of the history: its mark, and the claims up to it. */
interface Past extends HistoryMark {
  readonly claims: number
}

function pastOf(marks: readonly (HistoryMark | HistoryLine)[], sequence: number): Past {
  const mark = marks[sequence]
  if (mark === undefined) throw notAsWritten(`a history of ${sequence} lines or more`, `${marks.length - 1}`)
  const claims = marks.slice(0, sequence + 1).filter(line => 'kind' in line && line.kind === 'claim').length
  return { claims, digest: mark.digest, sequence }
}

function nextBody(known: Segments, storeId: string, past: Past): SegmentHeader['header'] {
  return {
    claims: past.claims,
    history_digest: past.digest,
    max_operations: 1,
    previous_digest: known.digest,
    schema: 'chio.caller-executor-segment.v1',
    segment: known.segment + 1,
    sequence: past.sequence,
    store_id: storeId,
  }
}

function after(known: Segments, signed: SegmentHeader): Segments {
  const headerDigest = sha256Hex(encode(SegmentHeader, signed))
  return {
    capacity: known.capacity + signed.header.max_operations,
    contents: [...known.contents, headerDigest],
    digest: headerDigest,
    segment: signed.header.segment,
  }
}

/** Signs the segment that comes next, over everything that the ledger holds. */
export function signNextSegment(
  known: Segments,
  storeId: string,
  history: readonly HistoryLine[],
  terms: { readonly key: SigningKey; readonly maxOperations: number },
): SegmentHeader {
  const past = pastOf([genesisOf(storeId), ...history], history.length)
  const header = { ...nextBody(known, storeId, past), max_operations: terms.maxOperations }
  return { header, signature: toHex(terms.key.sign(encode(SegmentBody, header))) }
}
