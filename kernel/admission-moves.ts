// Owns: the moves of the admission store: what each checks, what it changes, in one commit.
// Must never: hold SQL, or let a check stand outside the transaction that rests on it.
// Source: the admission state table; budget holds (reserve, capture once, reverse); the execution nonce's store.
import type { CallerExecutor } from '../protocol/caller-authorization.js'
import type { AdminOperation } from '../protocol/administration.js'
import { type BrokerError, isBrokerError } from '../protocol/errors.js'
import type { FailedPreparation } from '../protocol/failed-preparation.js'
import type { Grant } from '../protocol/grant.js'
import type { AcceptClock, Reconcile } from '../protocol/operation-rpc.js'
import type { BrokerRecord } from '../protocol/kernel-rpc.js'
import type {
  AdminOutcome,
  AdmissionStore,
  AnnounceCommand,
  AnswerCommand,
  ApprovalCommand,
  ListFilter,
  Recovered,
  ReserveCommand,
  RetainCommand,
  SettleCommand,
  StartCommand,
} from './admission-store.js'
import { assertNonceTime } from '../protocol/execution-nonce.js'
import * as approvals from './approval-moves.js'
import type { CallStore } from './calls/call-store.js'
import { dispatch } from './operation/dispatch.js'
import { EmbeddedCallStore } from './calls/embedded-calls.js'
import { brokerAttemptOf } from './operation/dispatch-commit.js'
import { EmbeddedLog } from './log/embedded-log.js'
import { brokerOutcomeId, endingOf } from './settling/ending.js'
import * as grants from './grant-moves.js'
import { assertCapabilityLive, assertGrantLive } from './liveness.js'
import * as rules from './operation/move-rules.js'
import { type AdmissionOperation, brokeredCall } from './operation/operation.js'
import { begin, note, preparedOf, type Step, stepsTo, walk } from './operation/operation-walk.js'
import { noteFailedPreparation } from './failed-preparation.js'
import { endParticipants } from './operation/participants.js'
import type { OutputJudgement } from './output/output-guards.js'
import { recover } from './settling/recovery.js'
import type { SqliteMove } from './sqlite/move.js'
import { bootEndOf } from './sqlite/nonce-tables.js'
import type { SqliteAdmissionTables } from './sqlite/tables.js'

/** The embedded store: the moves over SQLite tables. */
export class EmbeddedAdmissionStore implements AdmissionStore {
  readonly storeId: string
  readonly ownerEpoch: number
  readonly calls: CallStore
  readonly receipts: EmbeddedLog
  readonly #tables: SqliteAdmissionTables
  readonly #onFenced: (error: BrokerError) => void

  /** @param onFenced told when a commit finds that another owner took the store over. */
  constructor(tables: SqliteAdmissionTables, onFenced: (error: BrokerError) => void = () => {}) {
    this.#tables = tables
    this.#onFenced = onFenced
    this.storeId = tables.storeId
    this.ownerEpoch = tables.owner.ownerEpoch
    this.receipts = new EmbeddedLog(tables.receipts, (name, body) => this.#commit(name, body))
    this.calls = new EmbeddedCallStore(tables, (name, body) => this.#commit(name, body))
  }

  async findOperation(operationId: string) {
    return this.#tables.operations.find(operationId)
  }

  async findAttempt(attemptId: string) {
    return this.#tables.index.ofAttempt(attemptId)
  }

  async findSharing(operation: AdmissionOperation) {
    return this.#tables.index.sharing(operation)
  }

  async readRecord(operation: AdmissionOperation) {
    const { index, operations, reconciliations } = this.#tables
    const { operationId } = operation
    return {
      history: operations.history(operationId),
      reconciliations: reconciliations.of(operationId),
      sharing: index.sharing(operation),
    }
  }

  async readClock() {
    const { fault, row } = this.#tables.judgedClock()
    return { fault, highWaterUnixMs: row.highWaterUnixMs, wallUnixMs: this.#tables.reading().unixMs }
  }

  async findRequest(namespaceDigest: string, requestId: string) {
    return this.#tables.operations.ofRequest(namespaceDigest, requestId)
  }

  async listOperations(filter: ListFilter) {
    return this.#tables.operations.newest(filter)
  }

  async openOperations() {
    return this.#tables.operations.open()
  }

  async waitingOperations(callerPublicKey: string | null) {
    return this.#tables.operations.waiting(callerPublicKey)
  }

  async countByState() {
    return this.#tables.operations.stateCounts()
  }

  async findRetainedRequest(operationId: string) {
    return this.#tables.operations.retainedRequest(operationId)
  }

  async findGrant(grantId: string) {
    return this.#tables.grants.find(grantId)
  }

  async listGrants(filter: ListFilter) {
    return this.#tables.grants.newest(filter)
  }

  async readRevocation(ids: readonly string[]) {
    return this.#tables.grants.revocation(ids)
  }

  async findAdminOutcome(authorizationDigest: string, intentDigest: string) {
    return this.#tables.administration.outcome(authorizationDigest, intentDigest)
  }

  async approvalsOf(operationId: string) {
    return this.#tables.approvals.of(operationId)
  }

  issueGrant(grant: Grant, operation: AdminOperation): Promise<AdminOutcome> {
    return this.#administer('grant_issued', operation, move => grants.issueGrant(move, grant))
  }

  revokeGrant(grantId: string, operation: AdminOperation): Promise<AdminOutcome> {
    return this.#administer('grant_revoked', operation, move => grants.revokeGrant(move, grantId))
  }

  revokeCapability(capabilityId: string, operation: AdminOperation): Promise<AdminOutcome> {
    const revoke = (move: SqliteMove) => grants.revokeCapability(move, capabilityId)
    return this.#administer('capability_revoked', operation, revoke)
  }

  reconcile(stated: Reconcile, operation: AdminOperation): Promise<AdminOutcome> {
    return this.#administer('reconciled', operation, move => {
      const administrators = operation.authorization.approvals.map(({ approver }) => approver)
      const when = { recordedAtUnixMs: move.nowUnixMs, schema: 'chio.reconciliation.v1' } as const
      const kept = { administrators, ...when, stated }
      move.reconciliations.insert(kept, operation.authorizationDigest)
      return { commitIndex: move.head.commitIndex, grantId: stated.operationId, newlyRevoked: false }
    })
  }

  acceptClock({ highWaterUnixMs }: AcceptClock, operation: AdminOperation): Promise<AdminOutcome> {
    return this.#administer('clock_accepted', operation, move => {
      rules.assertHighWater(move, highWaterUnixMs)
      move.acceptClock(operation, this.#tables.reading())
      return { commitIndex: move.head.commitIndex, grantId: 'clock', newlyRevoked: false }
    })
  }

  reserve({ issuer, nonce, nonceCapacity, reservation }: ReserveCommand): Promise<AdmissionOperation> {
    return this.#commit('reserved', move => {
      const { binding, ids, request } = reservation
      const known = move.operations.ofRequest(binding.request_namespace_digest, binding.request_id)
      if (known !== undefined) return rules.sameOperation(known, binding.operation_id)
      const grant = move.grants.find(request.grantId)
      assertGrantLive(grant, move.nowUnixSeconds)
      rules.assertExecutionLeft(grant)
      rules.assertClock(move)
      const call = { kind: 'brokered', reservation, registration: null, record: null } as const
      const prepared = preparedOf(call, move)
      begin(move, prepared)
      move.holds.insert(reservation)
      move.nonces.reserve(nonce, { bootEnd: bootEndOf(move, nonce), capacity: nonceCapacity, issuer })
      const steps: Step[] = [
        { to: 'broker_attempt_registered', attach: { broker_attempt: brokerAttemptOf(reservation) } },
        { to: 'budget_authorized', attach: { budget_hold_id: ids.holdId } },
        { to: 'ready_to_dispatch', attach: { execution_nonce_id: nonce.signed.nonce.nonce_id } },
      ]
      return walk(move, prepared, steps, { cause: 'reserved' })
    })
  }

  retainRegistration({ operationId, registration, sealed }: RetainCommand): Promise<AdmissionOperation> {
    return this.#commit('registration_retained', move => {
      const operation = load(move, operationId)
      rules.assertState(operation, 'ready_to_dispatch', 'its registration is fixed')
      const known = brokeredCall(operation).registration
      if (known !== null) return rules.sameRegistration(operation, known, registration)
      move.operations.retain(operationId, sealed)
      return note(move, operation, { cause: 'registration retained', registration })
    })
  }

  preparationFailed(failed: FailedPreparation): Promise<AdmissionOperation> {
    return this.#commit('preparation_failed', move => noteFailedPreparation(move, failed))
  }

  start({ issuer, nonce }: StartCommand): Promise<AdmissionOperation> {
    return this.#commit('dispatch_committed', move => {
      const operation = load(move, nonce.operationId)
      if (operation.commit !== null) return operation
      rules.assertStartable(operation)
      const reserved = move.nonces.reserved(nonce, issuer)
      const { answer, request } = brokeredCall(operation).reservation
      assertGrantLive(move.grants.find(request.grantId), move.nowUnixSeconds)
      assertNonceTime(nonce.signed.nonce, move.nowUnixSeconds)
      assertCapabilityLive(answer.capability.body, move.nowUnixSeconds)
      rules.assertClock(move)
      move.holds.end(operation, 'captured')
      return dispatch(move, operation, { reserved, storeId: this.storeId })
    })
  }

  finalize(
    operationId: string,
    record: BrokerRecord,
    judgement?: OutputJudgement,
  ): Promise<AdmissionOperation> {
    return this.#commit('finalized', move => {
      const operation = load(move, operationId)
      if (rules.repeatsEnding(operation, record)) return operation
      const { lastError, path } = endingOf(operation.state, record, judgement)
      // What was delivered is in its host's journal: kept here too, it would only be one more copy to lose.
      if (path.includes('finalizing')) move.operations.dropRetained(operationId)
      const outcome = { tool_outcome_id: brokerOutcomeId(record) }
      const steps = path.map(to => (to === 'finalizing' ? { to, attach: outcome } : { to }))
      const said = { deniedBy: judgement?.refusal?.guard, evidence: judgement?.evidence }
      const milestone = { ...said, cause: `record: ${record.kind}`, lastError, record }
      const ended = walk(move, operation, steps, milestone)
      return path.includes('compensated_before_dispatch') ? endParticipants(move, ended) : ended
    })
  }

  compensate({ cause, operationId }: SettleCommand): Promise<AdmissionOperation> {
    return this.#commit('compensated', move => {
      const operation = load(move, operationId)
      if (operation.state === 'compensated_before_dispatch') return operation
      rules.assertReversible(operation)
      return endParticipants(move, walk(move, operation, stepsTo('compensated_before_dispatch'), { cause }))
    })
  }

  settleNotAccepted({ cause, operationId }: SettleCommand): Promise<AdmissionOperation> {
    return this.#commit('settled', move => {
      const operation = load(move, operationId)
      rules.assertState(operation, 'dispatch_committed', 'read it anew')
      return walk(move, operation, stepsTo('not_accepted_after_dispatch_commit'), { cause })
    })
  }

  announce(command: AnnounceCommand): Promise<AdmissionOperation> {
    return this.#commit('announced', move => approvals.announce(move, command))
  }

  submitApproval(command: ApprovalCommand): Promise<AdmissionOperation> {
    return this.#commit('approval_submitted', move => approvals.submitApproval(move, command))
  }

  answerApproved(command: AnswerCommand): Promise<AdmissionOperation> {
    return this.#commit('reserved', move => approvals.answerApproved(move, command))
  }

  recover(executor: CallerExecutor | null = null): Promise<Recovered> {
    return this.#commit('recovered', move => recover(move, executor))
  }

  async close(): Promise<void> {
    this.#tables.close()
  }

  async #commit<T>(name: string, body: (move: SqliteMove) => T): Promise<T> {
    try {
      return await this.#tables.transaction(name, body)
    } catch (error) {
      if (isBrokerError(error) && error.code === 'fenced') this.#onFenced(error)
      throw error
    }
  }

  /** Acts and consumes the approvals in one commit; an exact retry is answered from the first one. */
  #administer(name: string, operation: AdminOperation, act: (move: SqliteMove) => AdminOutcome) {
    return this.#commit(name, move => {
      const known = move.administration.outcome(operation.authorizationDigest, operation.intentDigest)
      if (known !== undefined) return known
      const outcome = act(move)
      move.administration.consumeApprovals(operation, outcome)
      return outcome
    })
  }
}

function load(move: SqliteMove, operationId: string): AdmissionOperation {
  return rules.assertFound(move.operations.find(operationId))
}
