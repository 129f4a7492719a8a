// Owns: how a verified record of the broker ends an operation, from the state in which it stands.
// Must never: turn an unknown outcome into another one, or take back what was started.
// Source: the failure receipt's dispatch knowledge; "brokered operations end as" of the admission rules.
import { type AdmissionState, isBeforeDispatch } from '../../protocol/admission-states.js'
import { encode } from '../../protocol/codec.js'
import { sha256Hex } from '../../protocol/digest.js'
import { BrokerError } from '../../protocol/errors.js'
import { BrokerRecord } from '../../protocol/kernel-rpc.js'
import type { OutputJudgement } from '../output/output-guards.js'

/** Names what the broker recorded, as the operation's outcome. */
export function brokerOutcomeId(record: BrokerRecord): string {
  return sha256Hex(encode(BrokerRecord, record))
}

export interface Ending {
  readonly path: readonly AdmissionState[]
  readonly lastError: string | null
}

/** Whether a record says for certain that nothing was sent to a provider. */
export function saysNothingSent(record: BrokerRecord): boolean {
  if (record.kind === 'receipt') return false
  const { dispatchKnowledge } = record.failure.receipt.body
  return dispatchKnowledge === 'not_started' || dispatchKnowledge === 'not_committed'
}

/**
 * The states through which a record takes an operation that is not yet terminal.
 * @throws BrokerError `conflict` when the record claims what this kernel never committed.
 */
export function endingOf(state: AdmissionState, record: BrokerRecord, judgement?: OutputJudgement): Ending {
  if (isBeforeDispatch(state)) return beforeDispatch(record)
  if (state !== 'dispatch_committed') {
    throw new BrokerError(
      'operation_state',
      `record refused: expected an operation that awaits one, got one in ${state}`,
    )
  }
  if (record.kind === 'receipt') return deliveredEnding(judgement)
  const { diagnosticCode, dispatchKnowledge } = record.failure.receipt.body
  switch (dispatchKnowledge) {
    case 'not_started':
    case 'not_committed':
      return { path: ['not_accepted_after_dispatch_commit'], lastError: diagnosticCode }
    case 'committed':
      return { path: ['finalizing', 'denied_after_delivery'], lastError: diagnosticCode }
    case 'unknown':
      return { path: ['outcome_unknown_after_dispatch'], lastError: diagnosticCode }
  }
}

/** What was delivered is denied when a guard refuses it: the hold stays spent, for the provider acted. */
function deliveredEnding(judgement: OutputJudgement | undefined): Ending {
  const refusal = judgement?.refusal ?? null
  if (refusal === null) return { path: ['finalizing', 'completed'], lastError: null }
  return {
    path: ['finalizing', 'denied_after_delivery'],
    lastError: `output guard ${refusal.guard}: ${refusal.reason}`,
  }
}

function beforeDispatch(record: BrokerRecord): Ending {
  if (record.kind === 'failure' && saysNothingSent(record)) {
    return { path: ['compensated_before_dispatch'], lastError: record.failure.diagnosticCode }
  }
  throw new BrokerError(
    'conflict',
    'record refused: expected one that agrees with an operation never started, got one of a dispatch; stop and compare the stores of kernel and broker',
  )
}

/** Whether a later record only repeats what an operation that ended without one already says. */
export function agreesWithEnding(state: AdmissionState, record: BrokerRecord): boolean {
  const endedUnsent =
    state === 'compensated_before_dispatch' || state === 'not_accepted_after_dispatch_commit'
  return endedUnsent && saysNothingSent(record)
}
