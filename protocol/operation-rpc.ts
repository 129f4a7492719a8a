// What the kernel says of one operation to whoever has to decide what to do, what a person states of it afterwards,
// and the wall clock as an administrator sees and accepts it. Ids, states, times and digests; never content.
import { AdmissionOperationDocument } from './admission-document.js'
import { ADMISSION_STATES } from './admission-states.js'
import {
  array,
  digest,
  type Infer,
  identifier,
  literal,
  nullable,
  object,
  oneOf,
  publicKeyHex,
  text,
} from './codec.js'
import { MAXIMUM_APPROVALS } from './limits.js'
import { Count, UnixMs } from './unix-time.js'

/** Most lines of a history that are told; the newest. */
export const MAXIMUM_HISTORY_LINES = 128
/** Most other operations of the same arguments that are named. */
export const MAXIMUM_SHARING = 16
export const MAXIMUM_RECONCILIATIONS = 64
const MAXIMUM_SENTENCE_BYTES = 512
const MAXIMUM_STATEMENT_BYTES = 4_096

const sentence = text({ minBytes: 1, maxBytes: MAXIMUM_SENTENCE_BYTES })
const state = oneOf(...ADMISSION_STATES)

/** What whoever starts has to know of that moment. It refuses nothing, and is no part of what was committed. */
export const StartWarning = object({
  code: literal('operation_shares_arguments'),
  /** Unresolved operations with the same arguments, newest first. */
  operationIds: array(digest(), { min: 1, max: MAXIMUM_SHARING }),
  sentence,
})
export type StartWarning = Infer<typeof StartWarning>
/** Absent where there is nothing to warn of. */
export const startWarnings = array(StartWarning, { min: 1, max: 1 })

/** An operation by its own id or by its attempt's. */
export const OperationName = object({ id: identifier(128) })

export const HistoryLine = object({
  cause: sentence,
  from: nullable(state),
  ownerEpoch: Count,
  recordedAtUnixMs: UnixMs,
  to: state,
  version: Count,
})
export type HistoryLine = Infer<typeof HistoryLine>

/** What the provider really did, as a person found it. */
export const PROVIDER_DEEDS = ['acted', 'did_not_act', 'not_known'] as const

export const Reconcile = object({
  operationId: digest(),
  provider: oneOf(...PROVIDER_DEEDS),
  statement: text({ minBytes: 1, maxBytes: MAXIMUM_STATEMENT_BYTES }),
})
export type Reconcile = Infer<typeof Reconcile>

/** A statement as it is kept: what was signed, by whom, and when it came. */
export const Reconciliation = object({
  administrators: array(publicKeyHex(), { min: 1, max: MAXIMUM_APPROVALS }),
  recordedAtUnixMs: UnixMs,
  schema: literal('chio.reconciliation.v1'),
  stated: Reconcile,
})
export type Reconciliation = Infer<typeof Reconciliation>

export const OperationExplanation = object({
  /** Where the broker says the attempt stands; in words where it says nothing. */
  attempt: sentence,
  /** Why the broker ended it: a row of docs/refusals.md; null where nothing was refused, or nothing is known. */
  attemptReason: nullable(text({ minBytes: 1, maxBytes: 64 })),
  capture: sentence,
  document: AdmissionOperationDocument,
  history: array(HistoryLine, { max: MAXIMUM_HISTORY_LINES }),
  mover: oneOf('approver', 'executor', 'host', 'kernel', 'nobody'),
  next: sentence,
  reconciliations: array(Reconciliation, { max: MAXIMUM_RECONCILIATIONS }),
  sharesArgumentsWith: array(digest(), { max: MAXIMUM_SHARING }),
})
export type OperationExplanation = Infer<typeof OperationExplanation>

/** Both hands of the kernel's clock; a fault is what stops admission. */
export const ClockView = object({
  fault: nullable(sentence),
  highWaterUnixMs: UnixMs,
  wallUnixMs: UnixMs,
})
export type ClockView = Infer<typeof ClockView>

/** The correction that an administrator signs: from what the kernel knew, to about what its wall clock says. */
export const AcceptClock = object({ highWaterUnixMs: UnixMs, wallUnixMs: UnixMs })
export type AcceptClock = Infer<typeof AcceptClock>
