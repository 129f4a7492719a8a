// Owns: the moves of the admission store: what each checks, what it changes, in one commit.
// Must never: hold SQL, or let a check stand outside the transaction that rests on it.
// Source: the admission state table; budget holds (reserve, capture once, reverse); the execution nonce's store.
import type { AdmissionState } from '../protocol/admission-states.js'
import type { AdminOperation } from '../protocol/administration.js'
import { BrokerError, isBrokerError } from '../protocol/errors.js'
import type { Grant } from '../protocol/grant.js'
import { grantRevocationId } from '../protocol/hold.js'
import type { BrokerRecord } from '../protocol/kernel-rpc.js'
import type {
  AdminOutcome,
  AdmissionStore,
  ListFilter,
  ReserveCommand,
  RetainCommand,
  SettleCommand,
} from './admission-store.js'
import { dispatchCommitOf } from './dispatch-commit.js'
import { endingOf } from './ending.js'
import { assertCapabilityLive, assertGrantLive, assertNonceLive } from './liveness.js'
import * as rules from './move-rules.js'
import { type AdmissionOperation, type Reservation, brokeredCall } from './operation.js'
import type { SqliteMove } from './sqlite/move.js'
import type { OperationChange } from './sqlite/operation-tables.js'
import type { SqliteAdmissionTables } from './sqlite/tables.js'

const RESERVED = ['broker_attempt_registered', 'budget_authorized', 'ready_to_dispatch'] as const
const STARTED = ['capture_pending', 'dispatch_committed'] as const

/** The embedded store: the moves over SQLite tables. */
export class EmbeddedAdmissionStore implements AdmissionStore {
  readonly storeId: string
  readonly ownerEpoch: number
  readonly #tables: SqliteAdmissionTables
  readonly #onFenced: (error: BrokerError) => void

  /** @param onFenced told when a commit finds that another owner took the store over. */
  constructor(tables: SqliteAdmissionTables, onFenced: (error: BrokerError) => void = () => {}) {
    this.#tables = tables
    this.#onFenced = onFenced
    this.storeId = tables.storeId
    this.ownerEpoch = tables.owner.ownerEpoch
  }

  async findOperation(operationId: string) {
    return this.#tables.operations.find(operationId)
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

  issueGrant(grant: Grant, operation: AdminOperation): Promise<AdminOutcome> {
    return this.#administer('grant_issued', operation, move => {
      const { grantId } = grant
      if (move.grants.find(grantId) !== undefined) {
        throw new BrokerError('conflict', `grant ${grantId} refused: expected a new id, got a known one`)
      }
      move.grants.insert(grant)
      return { commitIndex: move.head.commitIndex, grantId, newlyRevoked: false }
    })
  }

  revokeGrant(grantId: string, operation: AdminOperation): Promise<AdminOutcome> {
    return this.#administer('grant_revoked', operation, move => {
      if (move.grants.find(grantId) === undefined) {
        throw new BrokerError(
          'grant_unknown',
          `revocation refused: expected a grant of this kernel, got none`,
        )
      }
      const newlyRevoked = move.grants.revoke(grantId, [grantId, grantRevocationId(grantId)])
      return { commitIndex: move.head.commitIndex, grantId, newlyRevoked }
    })
  }

  reserve({ nonceCapacity, reservation }: ReserveCommand): Promise<AdmissionOperation> {
    return this.#commit('reserved', move => {
      const { binding, request } = reservation
      const known = move.operations.ofRequest(binding.request_namespace_digest, binding.request_id)
      if (known !== undefined) return rules.sameOperation(known, binding.operation_id)
      const grant = move.grants.find(request.grantId)
      assertGrantLive(grant, secondsOf(move))
      rules.assertExecutionLeft(grant)
      rules.assertNonceCapacity(move.head.liveNonces, nonceCapacity)
      const prepared = preparedOf(reservation, move.nowUnixMs)
      move.operations.insert(prepared)
      const created = { operationId: binding.operation_id, version: 1, from: null, to: 'prepared' } as const
      move.operations.recordHistory({ ...created, cause: 'asked' })
      move.holds.insert(reservation)
      return walk(move, prepared, RESERVED, { cause: 'reserved' })
    })
  }

  retainRegistration({ operationId, registration, sealed }: RetainCommand): Promise<AdmissionOperation> {
    return this.#commit('registration_retained', move => {
      const operation = load(move, operationId)
      rules.assertState(operation, 'ready_to_dispatch', 'its registration is fixed')
      const known = brokeredCall(operation).registration
      if (known !== null) return rules.sameRegistration(operation, known, registration)
      move.operations.retain(operationId, sealed)
      return walk(move, operation, [], { cause: 'registration retained', registration })
    })
  }

  start(operationId: string): Promise<AdmissionOperation> {
    return this.#commit('dispatch_committed', move => {
      const operation = load(move, operationId)
      if (operation.commit !== null) return operation
      rules.assertStartable(operation)
      const { answer, request } = brokeredCall(operation).reservation
      assertGrantLive(move.grants.find(request.grantId), secondsOf(move))
      assertNonceLive(answer.executionNonce.nonce, secondsOf(move))
      assertCapabilityLive(answer.capability.body, secondsOf(move))
      move.holds.end(operation, 'captured')
      const { nowUnixMs } = move
      const moment = { ...move.head, ...this.#tables.owner, nowUnixMs, storeId: this.storeId }
      const commit = dispatchCommitOf(operation, moment)
      return walk(move, operation, STARTED, { cause: 'started', commit })
    })
  }

  finalize(operationId: string, record: BrokerRecord): Promise<AdmissionOperation> {
    return this.#commit('finalized', move => {
      const operation = load(move, operationId)
      if (rules.repeatsEnding(operation, record)) return operation
      const { lastError, path } = endingOf(operation.state, record)
      if (path.includes('compensated_before_dispatch')) move.holds.end(operation, 'reversed')
      // What was delivered is in its host's journal: kept here too, it would only be one more copy to lose.
      if (path.includes('finalizing')) move.operations.dropRetained(operationId)
      return walk(move, operation, path, { cause: `record: ${record.kind}`, record, lastError })
    })
  }

  compensate({ cause, operationId }: SettleCommand): Promise<AdmissionOperation> {
    return this.#commit('compensated', move => {
      const operation = load(move, operationId)
      if (operation.state === 'compensated_before_dispatch') return operation
      rules.assertState(operation, 'ready_to_dispatch', "once started, only the broker's record ends it")
      move.holds.end(operation, 'reversed')
      return walk(move, operation, ['compensated_before_dispatch'], { cause })
    })
  }

  settleNotAccepted({ cause, operationId }: SettleCommand): Promise<AdmissionOperation> {
    return this.#commit('settled', move => {
      const operation = load(move, operationId)
      rules.assertState(operation, 'dispatch_committed', 'read it anew')
      return walk(move, operation, ['not_accepted_after_dispatch_commit'], { cause })
    })
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

function secondsOf(move: SqliteMove): number {
  return Math.floor(move.nowUnixMs / 1_000)
}

/** An operation as `insertOperation` makes it. */
function preparedOf(reservation: Reservation, nowUnixMs: number): AdmissionOperation {
  return {
    operationId: reservation.binding.operation_id,
    binding: reservation.binding,
    callerPublicKey: reservation.request.callerPublicKey,
    state: 'prepared',
    version: 1,
    createdAtUnixMs: nowUnixMs,
    updatedAtUnixMs: nowUnixMs,
    call: { kind: 'brokered', reservation, registration: null, record: null },
    commit: null,
    lastError: null,
  }
}

/** What a milestone adds; each is set once and never changed. */
interface Milestone extends Partial<Omit<OperationChange, 'to' | 'version'>> {
  readonly cause: string
}

/** Walks the states in order, each judged by the table, and adds what the milestone brought. */
function walk(
  move: SqliteMove,
  operation: AdmissionOperation,
  path: readonly AdmissionState[],
  { cause, ...milestone }: Milestone,
): AdmissionOperation {
  const { binding, operationId } = operation
  // Without a move the version still counts on: whoever judged the operation before has to read it anew.
  const steps = path.length === 0 ? [operation.state] : path
  let { state: from, version } = operation
  for (const to of steps) {
    if (path.length > 0) rules.assertLegalMove(binding, from, to)
    version += 1
    move.operations.recordHistory({ operationId, version, from, to, cause })
    from = to
  }
  return move.operations.change(operation, { ...milestone, to: from, version })
}
