// Owns: the moves of tool calls over the embedded store: one fenced commit each.
// Must never: hold SQL, or judge outside the commit that a verdict enters. Source: the caller API of the kernel.
import { preflightCall, reserveCall, startCall } from './call-moves.js'
import type {
  AuthorizeCallCommand,
  CallDecision,
  CallStore,
  Delivery,
  FinishCallCommand,
  PreflightCommand,
  RecordReportCommand,
  ReserveCallCommand,
  StartCallCommand,
} from './call-store.js'
import { finishCall, recordReport } from '../delivery/report-moves.js'
import { authorizeCall } from '../delivery/start-moves.js'
import type { Commit } from '../log/embedded-log.js'
import type { AdmissionOperation } from '../operation/operation.js'
import type { DeliveryReads } from '../sqlite/delivery-tables.js'
import type { OutcomeReads } from '../sqlite/outcome-tables.js'

export interface CallReads {
  readonly deliveries: DeliveryReads
  readonly outcomes: OutcomeReads
}

export class EmbeddedCallStore implements CallStore {
  readonly #reads: CallReads
  readonly #commit: Commit

  constructor(reads: CallReads, commit: Commit) {
    this.#reads = reads
    this.#commit = commit
  }

  preflightCall(command: PreflightCommand): Promise<CallDecision> {
    return this.#commit('call_preflighted', move => preflightCall(move, command))
  }

  reserveCall(command: ReserveCallCommand): Promise<CallDecision> {
    return this.#commit('call_reserved', move => reserveCall(move, command))
  }

  startCall(command: StartCallCommand): Promise<CallDecision> {
    return this.#commit('call_started', move => startCall(move, command))
  }

  authorizeCall(command: AuthorizeCallCommand): Promise<CallDecision> {
    return this.#commit('call_authorized', move => authorizeCall(move, command))
  }

  async findDelivery(operationId: string): Promise<Delivery> {
    const { deliveries } = this.#reads
    const authorization = deliveries.authorization(operationId) ?? null
    return { authorization, frozen: deliveries.context(operationId) ?? null }
  }

  recordReport(command: RecordReportCommand): Promise<AdmissionOperation> {
    return this.#commit('call_returned', move => recordReport(move, command))
  }

  async findOutcome(operationId: string) {
    return this.#reads.outcomes.ofOperation(operationId)
  }

  finishCall(command: FinishCallCommand): Promise<AdmissionOperation> {
    return this.#commit('call_finished', move => finishCall(move, command))
  }
}
