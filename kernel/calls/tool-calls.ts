// Owns: the tool-call API of the kernel: preflight, reserve with its nonce, start with credentials, the report that ends
// it. Every refusal is an answer with a signed receipt; faults are thrown.
// Must never: take the agent's key from its request, or answer that anything may be executed before a start has committed.
// Source: the caller API of the kernel (preflight -> refreshed context -> reserve -> start).
import { type OperationBinding, requestNamespaceDigest } from '../../protocol/admission-operation.js'
import { isTerminalState } from '../../protocol/admission-states.js'
import { BrokerError } from '../../protocol/errors.js'
import type { InvocationContext } from '../../protocol/invocation-context.js'
import type { PublicKey } from '../../protocol/keys.js'
import type { StartWarning } from '../../protocol/operation-rpc.js'
import type { ToolCallRequest } from '../../protocol/tool-call.js'
import type {
  CallAnswer,
  PreflightCallRequest,
  ReportAnswer,
  ReportCallRequest,
  ReserveCallRequest,
  StartAnswer,
  StartCallRequest,
} from '../../protocol/tool-call-rpc.js'
import { requiredApprovals } from './call-approvals.js'
import { answerOf, startAnswerOf } from './call-answer.js'
import { type CallRefusal, refusalOfError } from './call-refusal.js'
import type { CallCommand, CallDecision } from './call-store.js'
import { Deliveries } from '../delivery/deliveries.js'
import type { Caller, KernelContext } from '../kernel-context.js'
import { mintBoundNonce } from '../mint.js'
import { type AdmissionOperation, isToolCall } from '../operation/operation.js'
import { callSubject } from '../log/receipt-subject.js'
import { openCall, sealCall } from '../sealed-request.js'
import type { Settlement } from '../settling/settlement.js'
import { judgeSharing, sharingWarnings } from '../start-dispatch.js'
import { bindCall, nonceBindingOf } from './tool-call-terms.js'

/** What was asked, as far as it is known when it is refused. */
interface Asked {
  readonly agentId: string | null
  readonly requestId: string
  readonly request: ToolCallRequest | null
}

export class ToolCalls {
  readonly #context: KernelContext
  readonly #settlement: Settlement
  readonly #deliveries: Deliveries

  constructor(context: KernelContext, settlement: Settlement) {
    this.#context = context
    this.#settlement = settlement
    this.#deliveries = new Deliveries(context)
  }

  /** Judges a call and issues the nonce of its operation. It authorizes nothing. */
  async preflight(caller: Caller, { context, request }: PreflightCallRequest): Promise<CallAnswer> {
    const agentId = agentOf(caller)
    return this.#answer({ agentId, request, requestId: request.id }, async () => {
      const binding = this.#bind(request)
      const { operation_id: operationId } = binding
      const boundTo = nonceBindingOf(request)
      const terms = {
        agentId,
        binding,
        capabilityExpiresAt: request.capability_token.expires_at,
        executor: this.#context.callPolicy.executor,
        parameterHash: boundTo.parameter_hash,
        serverId: request.server_id,
        toolName: request.tool,
      }
      const sealed = sealCall(this.#context.keys.storage, operationId, request)
      return this.#context.store.calls.preflightCall({
        ...this.#command(agentId, context, request),
        mintNonce: now => mintBoundNonce(this.#context, { boundTo, operationId }, now),
        sealed,
        terms,
      })
    })
  }

  /** The same call with the nonce of its preflight, under the context as it is now. */
  async reserve(
    caller: Caller,
    { context, executionNonce, request }: ReserveCallRequest,
  ): Promise<CallAnswer> {
    const agentId = agentOf(caller)
    return this.#answer({ agentId, request, requestId: request.id }, async () => {
      if (executionNonce === null) throw withoutNonce()
      return this.#context.store.calls.reserveCall({
        ...this.#command(agentId, context, request),
        binding: this.#bind(request),
        nonce: executionNonce,
      })
    })
  }

  /** Preflight and reserve at once, for a host that reads no information-flow context. */
  async reserveCall(caller: Caller, request: ToolCallRequest): Promise<CallAnswer> {
    const context = contextWithoutFlow(request)
    const judged = await this.preflight(caller, { context, request })
    const { executionNonce } = judged
    return executionNonce === null ? judged : this.reserve(caller, { context, executionNonce, request })
  }

  /**
   * The reserved call by its nonce, with the arguments and credentials that are presented now. A committed one is
   * answered with the authorization that was signed, and nothing is asked of it anew.
   * @param caller null: whoever holds this kernel asks in its own process, for the agent that the nonce names.
   */
  async start(caller: Caller | null, start: StartCallRequest): Promise<StartAnswer> {
    const { request_id: requestId, subject_id: subjectId } = start.executionNonce.nonce.bound_to
    const agentId = caller === null ? subjectId : agentOf(caller)
    const operation = await this.#find(agentId, requestId)
    const request = operation === undefined ? null : await this.#retained(operation)
    let warnings: readonly StartWarning[] = []
    const decision = await this.#decide({ agentId, request, requestId }, async () => {
      if (operation === undefined || request === null) throw unknownCall()
      if (operation.commit !== null) {
        warnings = await sharingWarnings(this.#context, operation)
        return this.#deliveries.startedBefore(operation, start)
      }
      if (operation.state === 'ready_to_dispatch') warnings = await judgeSharing(this.#context, operation)
      const captured = await this.#context.store.calls.startCall({
        agentId,
        arguments: start.arguments,
        context: start.context,
        credentials: start.credentials,
        nonce: start.executionNonce,
        operationId: operation.operationId,
        policy: this.#context.callPolicy,
        request,
      })
      return captured.refusal === null ? this.#deliveries.authorize(operation) : captured
    })
    return startAnswerOf(decision, warnings, this.#context.clock.unixMs())
  }

  /**
   * Ends a started call by the signed report of its executor. The same report again has the same receipt.
   * @param caller null: whoever holds this kernel asks in its own process, for any agent.
   */
  async reconcile(caller: Caller | null, reported: ReportCallRequest): Promise<ReportAnswer> {
    const { request_id: requestId } = reported.authorization.authorization.invocation
    const agentId = caller === null ? null : agentOf(caller)
    const operation = await this.#find(agentId, requestId)
    const request = operation === undefined ? null : await this.#retained(operation)
    const owner = agentId ?? operation?.callerPublicKey ?? null
    const decision = await this.#decide({ agentId: owner, request, requestId }, () =>
      this.#deliveries.report(operation, reported),
    )
    return { ...answerOf(decision), output: decision.output ?? null }
  }

  /** A tool that nobody registered is refused by its target: until then it may do anything. */
  #bind(request: ToolCallRequest): OperationBinding {
    const { callPolicy, config } = this.#context
    const { effectClass = 'side_effecting' } = callPolicy.toolOf(request.server_id, request.tool) ?? {}
    const bounds = {
      effectClass,
      executor: callPolicy.executor,
      requiredApprovals: requiredApprovals(callPolicy, request),
    }
    return bindCall(request, config, bounds)
  }

  #command(agentId: string, context: CallCommand['context'], request: ToolCallRequest): CallCommand {
    return { agentId, context, policy: this.#context.callPolicy, request }
  }

  /** The tool call of a request id, if it is this agent's. */
  async #find(agentId: string | null, requestId: string): Promise<AdmissionOperation | undefined> {
    const { authorityId, tenantScope } = this.#context.config
    const namespace = requestNamespaceDigest(tenantScope, authorityId)
    const operation = await this.#context.store.findRequest(namespace, requestId)
    if (operation === undefined || !isToolCall(operation.call)) return undefined
    return agentId === null || operation.callerPublicKey === agentId ? operation : undefined
  }

  async #retained({ operationId }: AdmissionOperation): Promise<ToolCallRequest | null> {
    const sealed = await this.#context.store.findRetainedRequest(operationId)
    return sealed === undefined ? null : openCall(this.#context.keys.storage, operationId, sealed)
  }

  async #answer(asked: Asked, act: () => Promise<CallDecision>): Promise<CallAnswer> {
    return answerOf(await this.#decide(asked, act))
  }

  async #decide(asked: Asked, act: () => Promise<CallDecision>): Promise<CallDecision> {
    const decision = await act().catch(async (error: unknown) =>
      this.#refused(asked, refusalOfError('admission', error)),
    )
    const { operation } = decision
    if (operation !== null && isTerminalState(operation.state)) this.#settlement.forget(operation.operationId)
    else if (operation !== null) this.#settlement.schedule(operation)
    return decision
  }

  /** What the operation itself refused changed nothing: only its receipt is written. */
  async #refused({ agentId, request, requestId }: Asked, refusal: CallRefusal): Promise<CallDecision> {
    const operation = agentId === null ? null : ((await this.#find(agentId, requestId)) ?? null)
    const receipt = await this.#context.store.receipts.refused({
      callerPublicKey: agentId,
      capabilityId: request?.capability_token.id ?? operation?.binding.capability_id ?? '',
      code: refusal.code,
      operation,
      sentence: refusal.reason,
      ...(request === null ? { parameters: { request_id: requestId } } : callSubject(request)),
    })
    return { operation, receipt, refusal }
  }
}

/** @throws BrokerError `authorization_denied` for a client without a key: it is nobody's agent. */
function agentOf({ callerPublicKey }: Caller): PublicKey {
  if (callerPublicKey !== null) return callerPublicKey
  throw new BrokerError(
    'authorization_denied',
    "tool call refused: expected a client with a caller key in the kernel's configuration, got one without",
  )
}

/** One look at one session, which has no labels. */
function contextWithoutFlow({ id }: ToolCallRequest): InvocationContext {
  return { generation: 0, labels: [], schema: 'chio.invocation-context.v1', session_id: id }
}

function withoutNonce(): BrokerError {
  return new BrokerError(
    'execution_nonce_binding',
    'preflight returned no nonce; inspect its decision: reserve refused: expected the nonce of the preflight, got none',
    { outcome: 'not_started' },
  )
}

function unknownCall(): BrokerError {
  return new BrokerError(
    'operation_unknown',
    'start refused: expected a tool call of yours that was reserved with this nonce, got none; reserve it first',
    { outcome: 'not_started' },
  )
}
