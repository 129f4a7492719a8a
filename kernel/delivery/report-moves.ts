// Owns: the two moves that end a delivered call: what its executor reported is kept, and then ended by what guards say
// of it. The budget's hold ends with the second.
// Must never: take a second report, one from the future, or one that cost more than was held; a refused one leaves the
// operation as it was.
// Source: the order of checks of a caller report; budget holds (reconcile, release) of the kernel.
import { BrokerError } from '../../protocol/errors.js'
import type { MonetaryAmount } from '../../protocol/scope.js'
import { isTerminalState } from '../../protocol/admission-states.js'
import { isOutcomeOf } from '../../protocol/tool-outcome.js'
import type { FinishCallCommand, RecordReportCommand } from '../calls/call-store.js'
import { recordToolReturned } from '../calls/tool-outcome.js'
import { endHold } from '../calls/call-budget.js'
import { deliveredReason } from './delivered-call.js'
import * as rules from '../operation/move-rules.js'
import type { AdmissionOperation } from '../operation/operation.js'
import { stepsTo, walk } from '../operation/operation-walk.js'
import type { SqliteMove } from '../sqlite/move.js'

/**
 * Keeps a verified report with its outcome; the same one again changes nothing.
 * @throws BrokerError `caller_delivery_expired` for one from the future, `conflict` for another than the retained one or
 * for a cost beyond the hold, `operation_state` for a call that waits for none.
 */
export function recordReport(
  move: SqliteMove,
  { raw, report, sealed }: RecordReportCommand,
): AdmissionOperation {
  const operation = rules.assertFound(move.operations.find(raw.operation_id))
  assertPast(report.observation.completed_at_unix_ms, move.nowUnixMs)
  const known = move.outcomes.ofOperation(operation.operationId)
  if (known !== undefined) {
    if (isOutcomeOf(known.outcome, raw)) return operation
    throw conflicting(operation)
  }
  rules.assertState(operation, 'awaiting_caller_report', 'it takes no report any more: chio explain says why')
  assertCost(move, operation, raw.reported_cost)
  move.deliveries.insertReport(operation.operationId, report)
  return recordToolReturned(move, operation, { raw, sealed }).operation
}

/**
 * Ends a reported call, once: completed with its real cost, or denied with everything given back but the invocation.
 * An ended one is returned as it stands.
 */
export function finishCall(move: SqliteMove, { judgement, raw }: FinishCallCommand): AdmissionOperation {
  const operation = rules.assertFound(move.operations.find(raw.operation_id))
  if (isTerminalState(operation.state)) return operation
  rules.assertState(operation, 'finalizing', 'its report comes first')
  const { refusal } = judgement
  const holdId = operation.attachments.budget_hold_id as string
  endHold(
    move,
    holdId,
    refusal === null ? { realizedUnits: realizedUnitsOf(move, operation, raw.reported_cost) } : null,
  )
  const report = move.deliveries.report(operation.operationId)
  if (report === undefined) throw withoutReport(operation)
  return walk(move, operation, stepsTo(refusal === null ? 'completed' : 'denied_after_delivery'), {
    ...deliveredReason(raw, report, judgement),
    cause: 'reported by its executor',
    lastError: refusal === null ? null : `output guard ${refusal.guard}: ${refusal.reason}`,
  })
}

/** Nothing has happened that has not ended yet: an executor whose clock is ahead reports again later. */
function assertPast(completedAtUnixMs: number, nowUnixMs: number): void {
  const aheadMs = completedAtUnixMs - nowUnixMs
  if (aheadMs <= 0) return
  throw new BrokerError(
    'caller_delivery_expired',
    `delivery report time refused: expected an end that has passed, got one ${aheadMs} ms ahead; present it again then`,
  )
}

/** What was set aside is the most that can be spent. A grant without a bound of cost counts none. */
function assertCost(move: SqliteMove, operation: AdmissionOperation, cost: MonetaryAmount | null): void {
  const bound = costBoundOf(move, operation)
  if (bound === null || cost === null) return
  if (cost.currency !== bound.currency)
    refuseCost(operation, `a cost in ${bound.currency}, got ${cost.currency}`)
  if (cost.units > bound.units)
    refuseCost(operation, `at most the ${bound.units} units held, got ${cost.units}`)
}

/** Without a word of what it cost, all that was held is spent. */
function realizedUnitsOf(
  move: SqliteMove,
  operation: AdmissionOperation,
  cost: MonetaryAmount | null,
): number | null {
  return costBoundOf(move, operation) === null ? 0 : (cost?.units ?? null)
}

function costBoundOf(move: SqliteMove, { operationId }: AdmissionOperation): MonetaryAmount | null {
  return move.deliveries.context(operationId)?.context.cost_bound ?? null
}

function refuseCost({ operationId }: AdmissionOperation, expected: string): never {
  throw new BrokerError(
    'conflict',
    `report of ${operationId} refused: expected ${expected}; the operation is unchanged, state what was done: chio operation reconcile`,
    { operationId },
  )
}

function conflicting({ operationId, state }: AdmissionOperation): BrokerError {
  return new BrokerError(
    'conflict',
    `report of ${operationId} conflicts with retained authenticated delivery: expected the report by which it is ${state}, got another; the operation is unchanged`,
    { operationId },
  )
}

function withoutReport({ operationId }: AdmissionOperation): BrokerError {
  return new BrokerError('invariant', `end of ${operationId} refused: expected a retained report, got none`)
}
