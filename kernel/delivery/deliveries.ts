// Owns: caller delivery as it is asked for: the start that is answered with its signed authorization, the same one every
// time, and the report that ends it, one at a time.
// Must never: judge a committed start again, or believe a report before the authorization that it answers is this
// kernel's own. Source: caller start and caller report of the kernel, in their order of checks.
import {
  CallerAuthorization,
  canonicalAuthorization,
  type HistoricalAuthorization,
  verifyHistorical,
} from '../../protocol/caller-authorization.js'
import type { FrozenContext } from '../../protocol/caller-dispatch-context.js'
import { callerDeliveryRefusal } from '../../protocol/caller-delivery-refusal.js'
import { canonicalReport, verifyCallerReport } from '../../protocol/caller-report.js'
import { isSameDocument } from '../../protocol/codec.js'
import { BrokerError } from '../../protocol/errors.js'
import { nonceRefusal, SignedExecutionNonce } from '../../protocol/execution-nonce.js'
import { valueHash } from '../../protocol/kernel-receipt.js'
import type { ReportCallRequest, StartCallRequest } from '../../protocol/tool-call-rpc.js'
import type { RawInvocationOutcome } from '../../protocol/tool-outcome.js'
import { callRefusal, otherArguments } from '../calls/call-refusal.js'
import type { CallDecision } from '../calls/call-store.js'
import { openOutcome, sealOutcome } from '../calls/tool-outcome.js'
import type { KernelContext } from '../kernel-context.js'
import { type AdmissionOperation, toolCallOf } from '../operation/operation.js'
import { assertSamePin } from './caller-pin.js'
import { judgeValue, rawOutcomeOf } from './delivered-call.js'
import { callerInvocationOf } from './dispatch-authorization.js'
import { retainedReportOf } from './retained-report.js'

type DeliveryContext = Pick<KernelContext, 'callPolicy' | 'guards' | 'keys' | 'store'>

interface Committed {
  readonly authorization: HistoricalAuthorization
  readonly frozen: FrozenContext
}

export class Deliveries {
  readonly #context: DeliveryContext
  /** Operations whose report is being evaluated. */
  readonly #evaluated = new Set<string>()

  constructor(context: DeliveryContext) {
    this.#context = context
  }

  /** Signs a start that was captured, or repeats what was signed. No credential, no context and no time is asked. */
  async authorize(operation: AdmissionOperation): Promise<CallDecision> {
    const { callPolicy, store } = this.#context
    const { operationId } = operation
    const { authorization } = await store.calls.findDelivery(operationId)
    if (authorization === null) return store.calls.authorizeCall({ operationId, policy: callPolicy })
    return { authorization, operation, receipt: await store.receipts.startOf(operationId), refusal: null }
  }

  /**
   * A start whose original is committed already, asked with the same nonce and the same arguments.
   * @throws BrokerError `executor_changed`, `execution_nonce_binding`, `request_binding_mismatch`.
   */
  async startedBefore(operation: AdmissionOperation, start: StartCallRequest): Promise<CallDecision> {
    assertSamePin(operation, this.#context.callPolicy)
    const { terms } = toolCallOf(operation)
    if (!isSameDocument(SignedExecutionNonce, terms.executionNonce, start.executionNonce)) {
      throw nonceRefusal('binding', 'the nonce with which this operation was started')
    }
    if (valueHash(start.arguments) !== terms.parameterHash) throw otherArguments(operation.operationId)
    return this.authorize(operation)
  }

  /** Ends a started call by the signed report of its executor. @throws BrokerError with the first check that fails. */
  async report(
    operation: AdmissionOperation | undefined,
    presented: ReportCallRequest,
  ): Promise<CallDecision> {
    canonicalAuthorization(presented.authorization)
    canonicalReport(presented.report)
    if (operation === undefined || (await this.#request(operation)) === undefined) throw absent()
    const { operationId } = operation
    if (this.#evaluated.has(operationId)) throw evaluated(operation)
    this.#evaluated.add(operationId)
    try {
      return await this.#reported(operation, presented)
    } finally {
      this.#evaluated.delete(operationId)
    }
  }

  /** Ends a call whose report is on record: by nothing but that record. */
  async finish(operation: AdmissionOperation): Promise<CallDecision> {
    const { callPolicy, guards, keys, store } = this.#context
    const { serverId, toolName } = toolCallOf(operation).terms
    const { operationId } = operation
    const stored = await store.calls.findOutcome(operationId)
    if (stored === undefined) throw notReported(operation)
    const raw = openOutcome(keys.storage, stored)
    const ofTool = callPolicy.toolOf(serverId, toolName)?.outputGuards ?? []
    const judgement = judgeValue([...guards, ...ofTool], raw)
    return this.#endedBy(await store.calls.finishCall({ judgement, raw }), raw)
  }

  async #reported(operation: AdmissionOperation, presented: ReportCallRequest): Promise<CallDecision> {
    const { authorization, frozen } = await this.#committed(operation, presented.authorization)
    const report = verifyCallerReport(presented.report, authorization)
    const returned = sealOutcome(this.#context.keys.storage, rawOutcomeOf(operation, frozen, report))
    const { store } = this.#context
    const recorded = await store.calls.recordReport({ ...returned, report: retainedReportOf(report) })
    if (recorded.state === 'finalizing') return this.finish(recorded)
    return this.#endedBy(recorded, returned.raw)
  }

  /** The authorization that this kernel committed, which the presented one has to be. */
  async #committed(operation: AdmissionOperation, presented: CallerAuthorization): Promise<Committed> {
    const { callPolicy, store } = this.#context
    const { authorization, frozen } = await store.calls.findDelivery(operation.operationId)
    if (operation.commit === null || authorization === null || frozen === null) throw early(operation)
    assertSamePin(operation, callPolicy)
    if (!isSameDocument(CallerAuthorization, authorization, presented)) throw foreign()
    const { executor } = frozen.context
    const invocation = callerInvocationOf(operation)
    const pins = { executor, invocation, kernelKey: callPolicy.nonceIssuer }
    return { authorization: verifyHistorical(authorization, pins), frozen }
  }

  async #endedBy(operation: AdmissionOperation, { output }: RawInvocationOutcome): Promise<CallDecision> {
    const receipt = (await this.#context.store.receipts.answerOf(operation.operationId)) ?? null
    if (operation.state === 'completed') return { operation, output, receipt, refusal: null }
    const reason = operation.lastError ?? 'its output is withheld'
    return { operation, receipt, refusal: callRefusal('output', 'guard_denied', reason) }
  }

  #request({ operationId }: AdmissionOperation) {
    return this.#context.store.findRetainedRequest(operationId)
  }
}

function absent(): BrokerError {
  return new BrokerError(
    'operation_unknown',
    'caller report refused: original request is absent: expected one of yours that this kernel retains, got none',
  )
}

function evaluated({ operationId }: AdmissionOperation): BrokerError {
  return new BrokerError(
    'conflict',
    `report of ${operationId} refused: it is already being evaluated; ask again for the answer`,
    { operationId },
  )
}

function early({ operationId, state }: AdmissionOperation): BrokerError {
  return new BrokerError(
    'operation_state',
    `report of ${operationId} refused: it preceded dispatch commitment: expected awaiting_caller_report, got ${state}; only a started call has a report`,
    { operationId },
  )
}

function foreign(): BrokerError {
  const expected = 'expected the authorization that this kernel committed'
  return callerDeliveryRefusal('binding', `caller report refused: ${expected}, got another`)
}

function notReported({ operationId }: AdmissionOperation): BrokerError {
  return new BrokerError('invariant', `end of ${operationId} refused: expected a recorded outcome, got none`)
}
