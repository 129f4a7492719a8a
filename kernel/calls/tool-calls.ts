// Owns: the tool-call API of the kernel: preflight, reserve with its nonce, start with credentials, reconcile. Every
// refusal is an answer with a signed receipt; faults are thrown.
// Must never: take the agent's key from its request, or answer that anything may be executed before a start has committed.
// Source: the caller API of the kernel (preflight -> refreshed context -> reserve -> start).
import { requestNamespaceDigest } from '../../protocol/admission-operation.js'
import { type AdmissionState, isTerminalState } from '../../protocol/admission-states.js'
import { unixSeconds } from '../../protocol/clock.js'
import { BrokerError } from '../../protocol/errors.js'
import type { PublicKey } from '../../protocol/keys.js'
import type { ToolCallRequest } from '../../protocol/tool-call.js'
import type {
  CallAnswer,
  PreflightCallRequest,
  ReserveCallRequest,
  StartCallRequest,
} from '../../protocol/tool-call-rpc.js'
import { type CallRefusal, refusalOfError } from './call-refusal.js'
import type { CallCommand, CallDecision } from './call-store.js'
import { ownOperation } from '../operation/find-operation.js'
import type { Caller, KernelContext } from '../kernel-context.js'
import { mintBoundNonce } from '../mint.js'
import { type AdmissionOperation, toolCallOf } from '../operation/operation.js'
import { callSubject } from '../log/receipt-subject.js'
import { openCall, sealCall } from '../sealed-request.js'
import type { Settlement } from '../settling/settlement.js'
import { judgeSharing } from '../start-dispatch.js'
import { bindCall, nonceBindingOf } from './tool-call-terms.js'

/** What was asked, as far as it is known when it is refused. */
interface Asked {
  readonly agentId: PublicKey
  readonly requestId: string
  readonly request: ToolCallRequest | null
}

export class ToolCalls {
  readonly #context: KernelContext
  readonly #settlement: Settlement

  constructor(context: KernelContext, settlement: Settlement) {
    this.#context = context
    this.#settlement = settlement
  }

  /** Judges a call and issues the nonce of its operation. It authorizes nothing. */
  async preflight(caller: Caller, { context, request }: PreflightCallRequest): Promise<CallAnswer> {
    const agentId = agentOf(caller)
    return this.#decide({ agentId, request, requestId: request.id }, async () => {
      const binding = bindCall(request, this.#context.config)
      const { operation_id: operationId } = binding
      const boundTo = nonceBindingOf(request)
      const now = unixSeconds(this.#context.clock)
      const terms = {
        agentId,
        binding,
        capabilityExpiresAt: request.capability_token.expires_at,
        executionNonce: mintBoundNonce(this.#context, { boundTo, operationId }, now),
        parameterHash: boundTo.parameter_hash,
        serverId: request.server_id,
        toolName: request.tool,
      }
      const sealed = sealCall(this.#context.keys.storage, operationId, request)
      return this.#context.store.calls.preflightCall({
        ...this.#command(agentId, context, request),
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
    return this.#decide({ agentId, request, requestId: request.id }, async () => {
      if (executionNonce === null) throw withoutNonce()
      return this.#context.store.calls.reserveCall({
        ...this.#command(agentId, context, request),
        binding: bindCall(request, this.#context.config),
        nonce: executionNonce,
      })
    })
  }

  /** The reserved call by its nonce, with the arguments and credentials that are presented now. */
  async start(caller: Caller, start: StartCallRequest): Promise<CallAnswer> {
    const agentId = agentOf(caller)
    const { request_id: requestId } = start.executionNonce.nonce.bound_to
    const operation = await this.#find(agentId, requestId)
    const request = operation === undefined ? null : await this.#retained(operation)
    return this.#decide({ agentId, request, requestId }, async () => {
      if (operation === undefined || request === null) throw unknownCall()
      if (operation.state === 'ready_to_dispatch') await judgeSharing(this.#context, operation)
      return this.#context.store.calls.startCall({
        ...this.#command(agentId, start.context, request),
        arguments: start.arguments,
        credentials: start.credentials,
        nonce: start.executionNonce,
        operationId: operation.operationId,
      })
    })
  }

  /** Ends a started call by the report of its executor; there is none before one is pinned. */
  async reconcile(caller: Caller, { operationId }: { readonly operationId: string }): Promise<CallAnswer> {
    const agentId = agentOf(caller)
    const operation = await ownOperation(this.#context, caller, operationId)
    toolCallOf(operation)
    const request = await this.#retained(operation)
    const { request_id: requestId } = operation.binding
    return this.#decide({ agentId, request, requestId }, async () => {
      throw notReported(operation)
    })
  }

  #command(agentId: string, context: CallCommand['context'], request: ToolCallRequest): CallCommand {
    return { agentId, context, policy: this.#context.callPolicy, request }
  }

  /** This agent's tool call of a request id. */
  async #find(agentId: string, requestId: string): Promise<AdmissionOperation | undefined> {
    const { authorityId, tenantScope } = this.#context.config
    const namespace = requestNamespaceDigest(tenantScope, authorityId)
    const operation = await this.#context.store.findRequest(namespace, requestId)
    const isOwn = operation?.callerPublicKey === agentId && operation.call.kind === 'tool_call'
    return isOwn ? operation : undefined
  }

  async #retained({ operationId }: AdmissionOperation): Promise<ToolCallRequest | null> {
    const sealed = await this.#context.store.findRetainedRequest(operationId)
    return sealed === undefined ? null : openCall(this.#context.keys.storage, operationId, sealed)
  }

  async #decide(asked: Asked, act: () => Promise<CallDecision>): Promise<CallAnswer> {
    const decision = await act().catch(async (error: unknown) =>
      this.#refused(asked, refusalOfError('admission', error)),
    )
    const { operation } = decision
    if (operation !== null && isTerminalState(operation.state)) this.#settlement.forget(operation.operationId)
    else if (operation !== null) this.#settlement.schedule(operation)
    return answerOf(decision)
  }

  /** What the operation itself refused changed nothing: only its receipt is written. */
  async #refused({ agentId, request, requestId }: Asked, refusal: CallRefusal): Promise<CallDecision> {
    const operation = (await this.#find(agentId, requestId)) ?? null
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

/** The nonce is answered while it is good for something. */
const NONCE_STATES: readonly AdmissionState[] = ['prepared', 'ready_to_dispatch']

function answerOf({ operation, receipt, refusal }: CallDecision): CallAnswer {
  const isUsable = operation !== null && refusal === null && NONCE_STATES.includes(operation.state)
  return {
    check: refusal?.check ?? null,
    code: refusal?.code ?? null,
    executionAuthorized: false,
    executionNonce: isUsable ? toolCallOf(operation).terms.executionNonce : null,
    operationId: operation?.operationId ?? null,
    reason: refusal?.reason ?? null,
    receipt,
    state: operation?.state ?? null,
    verdict: refusal === null ? 'allow' : 'deny',
  }
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

function notReported({ operationId, state }: AdmissionOperation): BrokerError {
  if (state === 'awaiting_caller_report') {
    return new BrokerError(
      'executor_unpinned',
      `report of ${operationId} refused: expected a pinned executor whose report ends it, got none; the operation is unchanged`,
      { operationId },
    )
  }
  return new BrokerError(
    'operation_state',
    `report of ${operationId} refused: expected awaiting_caller_report, got ${state}; only a started call has a report`,
    { operationId },
  )
}
