// What the package exports as `chio-broker/sidecar-client`: the three steps of caller delivery over HTTP. It transports
// documents: it verifies no signature, claims nothing and runs no tool.
// Must never: retry, keep a control token, or pass on a reply of another protocol, status or operation.
// Source: the caller client of the kernel: evaluate, start, report.
import type { CallerAuthorization } from '../protocol/caller-authorization.js'
import {
  CALLER_PATHS,
  CALLER_PROTOCOL,
  CONTROL_TOKEN_FORM,
  EvaluateBody,
  EvaluateReply,
  readHttpJson,
  ReportBody,
  ReportReply,
  StartBody,
  StartReply,
} from '../protocol/caller-http.js'
import type { CallerReport } from '../protocol/caller-report.js'
import type { CapabilityToken } from '../protocol/capability-token.js'
import type { Clock } from '../protocol/clock.js'
import { type Codec, encode, object, text } from '../protocol/codec.js'
import { BrokerError } from '../protocol/errors.js'
import type { SignedExecutionNonce } from '../protocol/execution-nonce.js'
import type { JsonValue } from '../protocol/json.js'
import type { CallCredentials } from '../protocol/tool-call-rpc.js'
import { deadlineAfter } from '../system/deadline.js'
import { type CallerRecovery, SidecarRefusal, UnsettledReply } from './client-errors.js'
import { exchange, type SidecarAddress, type Target, targetOf } from './client-exchange.js'

export type { CallerRecovery } from './client-errors.js'
export { SidecarRefusal, UnsettledReply } from './client-errors.js'
export type { SidecarAddress } from './client-exchange.js'

const DEFAULT_TIMEOUT_MS = 30_000
const FixedBody = object({ error: text({ maxBytes: 128 }), message: text({ maxBytes: 1_024 }) })

type Others = Omit<EvaluateBody, 'capability' | 'parameters' | 'request_id' | 'tool_name' | 'tool_server'>

export interface EvaluateCall {
  readonly capability: CapabilityToken
  readonly toolServer: string
  readonly toolName: string
  readonly parameters: JsonValue
  /** The caller's own: what is asked for again under it is the same operation. */
  readonly requestId: string
  /** Members of the body that few calls have, by their names there. */
  readonly others?: Others
}

export interface StartExecution {
  readonly controlToken: string
  readonly executionNonce: SignedExecutionNonce
  readonly arguments: JsonValue
  readonly credentials?: CallCredentials
}

export interface ReportExecution {
  readonly controlToken: string
  readonly authorization: CallerAuthorization
  readonly report: CallerReport
}

interface Step<B, R> {
  readonly body: Codec<B>
  readonly reply: Codec<R>
  /** Which HTTP status a reply of each kind has. */
  readonly statusOf: (reply: R) => number
  /** Whether the reply is one to what was asked. */
  readonly isOf: (reply: R, recovery: CallerRecovery) => boolean
}

const STEPS = {
  evaluate: {
    body: EvaluateBody,
    reply: EvaluateReply,
    statusOf: () => 200,
    isOf: (reply, { requestId }) =>
      reply.status !== 'reserved' || reply.execution_nonce.nonce.bound_to.request_id === requestId,
  } satisfies Step<EvaluateBody, EvaluateReply>,
  start: {
    body: StartBody,
    reply: StartReply,
    statusOf: ({ status }) => (status === 'deny' ? 403 : 200),
    isOf: (reply, recovery) => reply.status === 'deny' || isAuthorizationOf(reply.authorization, recovery),
  } satisfies Step<StartBody, StartReply>,
  report: {
    body: ReportBody,
    reply: ReportReply,
    statusOf: () => 200,
    isOf: () => true,
  } satisfies Step<ReportBody, ReportReply>,
}

export interface SidecarClientOptions {
  readonly clock: Clock
  /** For one whole exchange, 30,000 unless said. */
  readonly timeoutMs?: number
}

/** A client of one sidecar. It keeps nothing but the address. */
export class SidecarClient {
  readonly #target: Target
  readonly #clock: Clock
  readonly #timeoutMs: number

  /** @throws RangeError for an address that is not of this machine. */
  constructor(address: SidecarAddress, { clock, timeoutMs = DEFAULT_TIMEOUT_MS }: SidecarClientOptions) {
    this.#target = targetOf(address)
    this.#clock = clock
    this.#timeoutMs = timeoutMs
  }

  /**
   * Reserves a call. `reserved` carries the nonce for a start and authorizes nothing; `deny` carries its receipt,
   * `pending_approval` the operation that people were asked about.
   * @throws UnsettledReply, SidecarRefusal; BrokerError `sidecar_unavailable`, `custody` or `peer_mismatch` where
   * nothing was asked.
   */
  evaluateToolCall(call: EvaluateCall): Promise<EvaluateReply> {
    const { capability, others, parameters, requestId, toolName, toolServer } = call
    const body = { ...others, capability, parameters, request_id: requestId, tool_name: toolName }
    const recovery = { ...NOTHING, requestId, step: 'evaluate' } as const
    return this.#ask(STEPS.evaluate, { ...body, tool_server: toolServer }, recovery, null)
  }

  /**
   * Commits a reserved call. The authorization is for the pinned executor alone; `deny` carries its receipt.
   * @throws as `evaluateToolCall`; TypeError for what is no bearer token.
   */
  startMediatedExecution(start: StartExecution): Promise<StartReply> {
    const { arguments: args, controlToken, credentials, executionNonce } = start
    const body = { arguments: args, execution_nonce: executionNonce, protocol: CALLER_PROTOCOL } as const
    const { request_id: requestId } = executionNonce.nonce.bound_to
    const recovery = { ...NOTHING, executionNonce, requestId, step: 'start' } as const
    const whole = credentials === undefined ? body : { ...body, credentials }
    return this.#ask(STEPS.start, whole, recovery, assertToken(controlToken))
  }

  /**
   * Ends a started call by its executor's report: `reconciled` with the guarded output, or `deny`.
   * @throws as `startMediatedExecution`.
   */
  reportMediatedExecution(reported: ReportExecution): Promise<ReportReply> {
    const { authorization, controlToken, report } = reported
    const { request_id: requestId } = authorization.authorization.invocation
    const recovery = { ...NOTHING, authorization, report, requestId, step: 'report' } as const
    const body = { authorization, protocol: CALLER_PROTOCOL, report } as const
    return this.#ask(STEPS.report, body, recovery, assertToken(controlToken))
  }

  async #ask<B, R>(
    step: Step<B, R>,
    body: B,
    recovery: CallerRecovery,
    controlToken: string | null,
  ): Promise<R> {
    const path = CALLER_PATHS[recovery.step]
    const sent = { body: encode(step.body, body), controlToken, path }
    const deadlineBootNs = deadlineAfter(this.#clock, this.#timeoutMs)
    const result = await exchange(this.#target, sent, { clock: this.#clock, deadlineBootNs })
    if (result.kind === 'unreached') throw unreached(recovery, result.reason)
    if (result.kind === 'lost') throw lost(recovery, result.reason)
    return replyOf(step, result, recovery)
  }
}

const NOTHING = { authorization: null, executionNonce: null, report: null } as const

function replyOf<B, R>(
  { isOf, reply: codec, statusOf }: Step<B, R>,
  { body, status }: { readonly body: Uint8Array; readonly status: number },
  recovery: CallerRecovery,
): R {
  const fixed = attempt(() => readHttpJson(FixedBody, body, 'refusal'))
  if (fixed !== undefined && status >= 400) throw new SidecarRefusal(recovery.step, status, fixed.error)
  const reply = attempt(() => readHttpJson(codec, body, 'reply'))
  if (reply !== undefined && statusOf(reply) === status && isOf(reply, recovery)) return reply
  throw new UnsettledReply(
    'reply_refused',
    `reply to ${recovery.step} of ${recovery.requestId} refused: expected one of ${CALLER_PROTOCOL} to this request, got another with status ${status}; recover the original operation`,
    recovery,
  )
}

/** A reply names its operation: one to another question is none to this. */
function isAuthorizationOf(
  { authorization: { committed, invocation } }: CallerAuthorization,
  { executionNonce, requestId }: CallerRecovery,
): boolean {
  return (
    invocation.request_id === requestId && committed.execution_nonce_id === executionNonce?.nonce.nonce_id
  )
}

function attempt<T>(read: () => T): T | undefined {
  try {
    return read()
  } catch {
    return undefined
  }
}

function assertToken(token: string): string {
  if (CONTROL_TOKEN_FORM.test(token)) return token
  throw new TypeError('"controlToken" expected a bearer token of 1 to 512 characters, got another text')
}

function lost(recovery: CallerRecovery, reason: string): UnsettledReply {
  return new UnsettledReply(
    'reply_lost',
    `reply to ${recovery.step} of ${recovery.requestId} lost: expected a whole reply, got ${reason}; recover the original operation, and never ask under another id`,
    recovery,
  )
}

function unreached({ requestId, step }: CallerRecovery, reason: string): BrokerError {
  return new BrokerError(
    'sidecar_unavailable',
    `${step} of ${requestId} not sent: expected a sidecar that listens, got ${reason}`,
    { outcome: 'not_started' },
  )
}
