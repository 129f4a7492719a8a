// Owns: the operations that a host or an administrator asks of a kernel, one method each.
// Must never: know how it was asked. The caller was judged before; what grants is proved by signatures.
// Source: the kernel's host socket (`chio.kernel-rpc.v1`).
import { isTerminalState } from '../protocol/admission-states.js'
import type { AdminAuthorization } from '../protocol/administration.js'
import { BrokerError } from '../protocol/errors.js'
import type { Grant } from '../protocol/grant.js'
import type {
  AuthorizeRegistrationResult,
  BrokerRecord,
  FinalizedOperation,
  InspectedOperation,
  KernelOperation,
  KernelOperationKind,
  KernelResult,
  KernelStatus,
  OperationView,
  ReleaseResult,
  ReserveAnswer,
  StartResult,
} from '../protocol/kernel-rpc.js'
import { acceptClock, reconcile, showClock } from './administer-records.js'
import { issueGrant, listGrants, revokeCapability, revokeGrant, showGrant } from './administer-grants.js'
import { listApprovals, showApproval, submitApproval, unanswered, viewOf } from './approvals.js'
import { authorizeRegistration, signAction } from './authorize-registration.js'
import { deadlineAfter } from '../system/deadline.js'
import { explain } from './operation/explain.js'
import { faultFields } from './fault-fields.js'
import { finalize, retainedAttempt } from './settling/finalize.js'
import { ownOperation, readableOperation } from './operation/find-operation.js'
import type { Caller, KernelContext } from './kernel-context.js'
import { type AdmissionOperation, brokeredCall } from './operation/operation.js'
import { operationDocument } from './operation/operation-document.js'
import { operationView } from './operation/operation-view.js'
import { answerReceipt, readCheckpoints, readLog, sealLog, showReceipt } from './log/read-log.js'
import { askedOf, askedToReserve, decided } from './log/refused-decision.js'
import { reserve } from './reserve.js'
import { release } from './settling/settle-operation.js'
import type { Settlement } from './settling/settlement.js'
import { startDispatch } from './start-dispatch.js'
import { ToolCalls } from './calls/tool-calls.js'

/** How long a status waits to learn whether the broker answers. */
const PROBE_MS = 500

export type RequestOf<K extends KernelOperationKind> = Extract<KernelOperation, { kind: K }>['request']
export type ResponseOf<K extends KernelOperationKind> = Extract<KernelResult, { kind: K }>['response']

export class Kernel {
  readonly calls: ToolCalls
  readonly #context: KernelContext
  readonly #settlement: Settlement
  #probing: Promise<boolean> | undefined

  constructor(context: KernelContext, settlement: Settlement) {
    this.calls = new ToolCalls(context, settlement)
    this.#context = context
    this.#settlement = settlement
  }

  /** @throws BrokerError `approval_required` while people decide; the same reserve goes on once they agreed. */
  reserve(caller: Caller, request: RequestOf<'reserve'>): Promise<ReserveAnswer> {
    const asked = async () => askedToReserve(request)
    return decided(this.#context, caller, asked, async () => {
      const operation = await reserve(this.#context, caller, request)
      const { operationId, state } = operation
      if (state === 'ready_to_dispatch' || state === 'approval_required') this.#settlement.schedule(operation)
      if (operation.call.kind === 'announced') throw unanswered(operation)
      const receipt = await answerReceipt(this.#context, operationId)
      return { ...brokeredCall(operation).reservation.answer, receipt }
    })
  }

  authorizeRegistration(
    caller: Caller,
    request: RequestOf<'authorize_registration'>,
  ): Promise<AuthorizeRegistrationResult> {
    const asked = () => askedOf(this.#context, 'authorize_registration', request.operationId)
    return decided(this.#context, caller, asked, () => authorizeRegistration(this.#context, caller, request))
  }

  async start(caller: Caller, request: RequestOf<'start'>): Promise<StartResult> {
    const asked = () => askedOf(this.#context, 'start', request.operationId)
    const start = () => startDispatch(this.#context, caller, request)
    const result = await decided(this.#context, caller, asked, start)
    const operation = await this.#context.store.findOperation(request.operationId)
    if (operation !== undefined && !isTerminalState(operation.state)) this.#settlement.schedule(operation)
    return result
  }

  async finalize(
    caller: Caller,
    request: { readonly operationId: string; readonly record: BrokerRecord },
  ): Promise<FinalizedOperation> {
    const operation = await ownOperation(this.#context, caller, request.operationId)
    const view = await this.#ended(await finalize(this.#context, operation, request.record))
    return { ...view, receipt: await answerReceipt(this.#context, operation.operationId) }
  }

  /** Signs a release. Harmless in any state: the broker releases nothing that went further. */
  async authorizeRelease(
    caller: Caller,
    { operationId }: RequestOf<'authorize_release'>,
  ): Promise<ReleaseResult> {
    const { registration } = brokeredCall(await ownOperation(this.#context, caller, operationId))
    if (registration === null) {
      throw new BrokerError(
        'operation_state',
        `release of ${operationId} refused: expected a retained registration, got none; cancel the operation`,
        { operationId },
      )
    }
    return { registration, releaseAuthorization: signAction(this.#context, registration, 'release') }
  }

  /** Takes back what was not started. The broker is told too, but the answer does not wait for it. */
  async cancel(caller: Caller, { operationId }: RequestOf<'cancel'>): Promise<OperationView> {
    const own = await ownOperation(this.#context, caller, operationId)
    const operation = await this.#context.store.compensate({ cause: 'cancelled by its host', operationId })
    if (own.state !== operation.state) void this.#releaseQuietly(operation)
    return this.#ended(operation)
  }

  /** What a host was told of a preparation. It changes no state: the broker's record, or time, gives the hold back. */
  async preparationFailed(caller: Caller, failed: RequestOf<'preparation_failed'>): Promise<OperationView> {
    await ownOperation(this.#context, caller, failed.operationId)
    return this.#sharedView(await this.#context.store.preparationFailed(failed))
  }

  async inspect(caller: Caller, { operationId }: RequestOf<'inspect'>): Promise<InspectedOperation> {
    const operation = await readableOperation(this.#context, caller, operationId)
    const endedBy = await this.#context.store.receipts.endIdOf(operationId)
    return { ...(await this.#sharedView(operation)), document: operationDocument(operation, endedBy) }
  }

  async explain(caller: Caller, { id }: RequestOf<'explain'>): Promise<ResponseOf<'explain'>> {
    const { explanation, operation } = await explain(this.#context, caller, id)
    return { explanation, operation: await this.#sharedView(operation) }
  }

  async reconcile(
    authorization: AdminAuthorization | null,
    stated: RequestOf<'reconcile'>,
  ): Promise<ResponseOf<'reconcile'>> {
    const { commitIndex } = await reconcile(this.#context, authorization, stated)
    return { commitIndex, operationId: stated.operationId }
  }

  async acceptClock(
    authorization: AdminAuthorization | null,
    accepted: RequestOf<'accept_clock'>,
  ): Promise<ResponseOf<'accept_clock'>> {
    const { commitIndex } = await acceptClock(this.#context, authorization, accepted)
    return { commitIndex }
  }

  showClock(): Promise<ResponseOf<'show_clock'>> {
    return showClock(this.#context)
  }

  async list(caller: Caller, { limit }: RequestOf<'list'>): Promise<ResponseOf<'list'>> {
    const filter = { callerPublicKey: caller.callerPublicKey, limit }
    const operations = await this.#context.store.listOperations(filter)
    return { operations: await Promise.all(operations.map(operation => this.#sharedView(operation))) }
  }

  listApprovals(caller: Caller, { limit }: RequestOf<'approval_list'>): Promise<ResponseOf<'approval_list'>> {
    return listApprovals(this.#context, caller, limit)
  }

  showApproval(
    caller: Caller,
    { operationId }: RequestOf<'approval_show'>,
  ): Promise<ResponseOf<'approval_show'>> {
    return showApproval(this.#context, caller, operationId)
  }

  async submitApproval(request: RequestOf<'approval_submit'>): Promise<ResponseOf<'approval_submit'>> {
    const operation = await submitApproval(this.#context, request)
    if (isTerminalState(operation.state)) this.#settlement.forget(operation.operationId)
    return viewOf(this.#context, operation)
  }

  showReceipt(caller: Caller, name: RequestOf<'show_receipt'>): Promise<ResponseOf<'show_receipt'>> {
    return showReceipt(this.#context, caller, name)
  }

  readLog(caller: Caller, page: RequestOf<'read_log'>): Promise<ResponseOf<'read_log'>> {
    return readLog(this.#context, caller, page)
  }

  readCheckpoints(
    caller: Caller,
    page: RequestOf<'read_checkpoints'>,
  ): Promise<ResponseOf<'read_checkpoints'>> {
    return readCheckpoints(this.#context, caller, page)
  }

  sealLog(caller: Caller): Promise<ResponseOf<'seal_log'>> {
    return sealLog(this.#context, caller)
  }

  async issueGrant(
    authorization: AdminAuthorization | null,
    grant: Grant,
  ): Promise<ResponseOf<'issue_grant'>> {
    const { commitIndex, grantId } = await issueGrant(this.#context, authorization, grant)
    return { commitIndex, grantId }
  }

  revokeGrant(
    authorization: AdminAuthorization | null,
    reference: RequestOf<'revoke_grant'>,
  ): Promise<ResponseOf<'revoke_grant'>> {
    return revokeGrant(this.#context, authorization, reference)
  }

  async revokeCapability(
    authorization: AdminAuthorization | null,
    reference: RequestOf<'revoke_capability'>,
  ): Promise<ResponseOf<'revoke_capability'>> {
    const { commitIndex, newlyRevoked } = await revokeCapability(this.#context, authorization, reference)
    return { ...reference, commitIndex, newlyRevoked }
  }

  showGrant(caller: Caller, { grantId }: RequestOf<'show_grant'>): Promise<ResponseOf<'show_grant'>> {
    return showGrant(this.#context, caller, grantId)
  }

  listGrants(caller: Caller, { limit }: RequestOf<'list_grants'>): Promise<ResponseOf<'list_grants'>> {
    return listGrants(this.#context, caller, limit)
  }

  async status(): Promise<KernelStatus> {
    const { store } = this.#context
    return {
      brokerReachable: await this.#brokerReachable(),
      clockFault: (await store.readClock()).fault,
      operations: await store.countByState(),
      ownerEpoch: store.ownerEpoch,
      waiting: this.#settlement.waiting,
    }
  }

  async #sharedView(operation: AdmissionOperation): Promise<OperationView> {
    const sharing = await this.#context.store.findSharing(operation)
    return operationView(operation, this.#settlement.outlook(operation.operationId), sharing)
  }

  #ended(operation: AdmissionOperation): Promise<OperationView> {
    this.#settlement.forget(operation.operationId)
    return this.#sharedView(operation)
  }

  async #releaseQuietly(operation: AdmissionOperation): Promise<void> {
    try {
      const attempt = await retainedAttempt(this.#context, operation)
      if (attempt !== undefined) await release(this.#context, attempt)
    } catch (error) {
      const { operationId } = operation
      this.#context.log({
        level: 'warn',
        event: 'release_after_cancel_failed',
        operationId,
        ...faultFields(error),
      })
    }
  }

  /** Whoever asks meanwhile gets the same answer: many questions must not become many connections to the broker. */
  #brokerReachable(): Promise<boolean> {
    return (this.#probing ??= this.#probe().finally(() => {
      this.#probing = undefined
    }))
  }

  async #probe(): Promise<boolean> {
    const { clock, records } = this.#context
    try {
      return await records.isReachable(deadlineAfter(clock, PROBE_MS))
    } catch {
      return false
    }
  }
}
