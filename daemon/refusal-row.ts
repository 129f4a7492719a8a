// Owns the shape of one refusal: which check, when, what the peer hears, what becomes of the attempt.
// Must never: let a peer hear more than a fixed code.
// Source: the broker protocol, sections 2.4, 5.17 and 9.
import type { ErrorCode } from '../protocol/error-codes.js'

/**
 * `connection` before a request is read · `request` an ordinary operation · `preparation` before the
 * acknowledgement · `held` while the stream waits for its frame · `consumption` after the exact frame, before the
 * dispatch commit · `dispatched` after it · `start` when the daemon starts.
 */
export const REFUSAL_MOMENTS = [
  'connection',
  'request',
  'preparation',
  'held',
  'consumption',
  'dispatched',
  'start',
] as const
export type RefusalMoment = (typeof REFUSAL_MOMENTS)[number]

export interface RefusalRow {
  readonly check: string
  /** Completes "expected …" in the operator's sentence. */
  readonly expected: string
  readonly when: readonly RefusalMoment[]
  /** What a declined answer says; in a signed failure `chio.broker.<code>`. */
  readonly code: ErrorCode
  /** State of the attempt afterwards; `unchanged` also where there is none. */
  readonly attempt: 'unchanged' | 'failed' | 'unknown_outcome'
  /** Closed without a byte even where the moment would let the peer hear the code. */
  readonly silent?: true
}

type Cells = readonly [check: string, expected: string, when: readonly RefusalMoment[], code: ErrorCode]

export const kept = (...[check, expected, when, code]: Cells): RefusalRow => ({
  check,
  expected,
  when,
  code,
  attempt: 'unchanged',
})
export const silent = (...cells: Cells): RefusalRow => ({ ...kept(...cells), silent: true })
export const fails = (...cells: Cells): RefusalRow => ({ ...kept(...cells), attempt: 'failed' })
export const unknown = (...cells: Cells): RefusalRow => ({ ...kept(...cells), attempt: 'unknown_outcome' })

/** What the peer of one moment sees of a row. */
export function peerSees(row: RefusalRow, moment: RefusalMoment): string {
  if (row.silent === true || moment === 'connection' || moment === 'held')
    return 'the connection closes without a byte'
  if (moment === 'consumption' || moment === 'dispatched') return `signed failure \`chio.broker.${row.code}\``
  if (moment === 'start') return `on replay: signed failure \`chio.broker.${row.code}\``
  return `\`accepted: false\`, \`${row.code}\``
}
