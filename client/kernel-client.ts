// Typed calls to the kernel's host socket over one connection. A refusal of the kernel becomes an error
// with the kernel's own code and sentence; a lost connection says that nothing is known of the call.
import { randomBytes } from 'node:crypto'
import type { AdminAuthorization } from '../protocol/administration.js'
import type { Clock } from '../protocol/clock.js'
import { decode, encode } from '../protocol/codec.js'
import { ERROR_CODES, type ErrorCode } from '../protocol/error-codes.js'
import { BrokerError, isBrokerError } from '../protocol/errors.js'
import {
  ADMINISTRATIVE_OPERATIONS,
  KERNEL_RPC_SCHEMA,
  type KernelOperation,
  type KernelOperationKind,
  type KernelRefusal,
  KernelRequest,
  KernelResponse,
  type KernelResult,
} from '../protocol/kernel-rpc.js'
import { MAXIMUM_RESPONSE_FRAME_BYTES } from '../protocol/limits.js'
import { RpcConnection } from '../system/rpc-connection.js'
import type { KernelPins } from './broker-pins.js'
import { deadlineAfter } from '../system/deadline.js'

type RequestOf<K extends KernelOperationKind> = Extract<KernelOperation, { kind: K }>['request']
type ResponseOf<K extends KernelOperationKind> = Extract<KernelResult, { kind: K }>['response']

/** How long a host waits for the kernel; start and reserve each make one durable commit. */
const CALL_BUDGET_MS = 10_000

/** One kernel, as its pins describe it. Close it when done. */
export class KernelClient {
  readonly pins: KernelPins
  readonly #clock: Clock
  readonly #rpc: RpcConnection

  constructor(pins: KernelPins, clock: Clock) {
    this.pins = pins
    this.#clock = clock
    this.#rpc = new RpcConnection({
      path: pins.socketPath,
      ownerUid: pins.uid,
      socketGid: pins.socketGid,
      clock,
      unavailable: 'kernel_unavailable',
      maximumFrameBytes: MAXIMUM_RESPONSE_FRAME_BYTES,
      keyOf: body => readResponse(body).requestId,
    })
  }

  /**
   * Calls one operation.
   * @param authorization an administrator's word, for the operations that need one.
   * @throws BrokerError with the kernel's code; `kernel_unavailable` when no answer came.
   */
  async call<K extends KernelOperationKind>(
    kind: K,
    request: RequestOf<K>,
    authorization: AdminAuthorization | null = null,
  ): Promise<ResponseOf<K>> {
    const requestId = randomBytes(32).toString('hex')
    const body = encode(KernelRequest, {
      authorization,
      operation: { kind, request } as unknown as KernelOperation,
      requestId,
      schema: KERNEL_RPC_SCHEMA,
      tenantScope: this.pins.tenantScope,
    })
    const response = readResponse(await this.#request(requestId, body, kind))
    if (response.refusal !== null) throw refusalError(response.refusal)
    if (response.result?.kind !== kind) {
      throw new BrokerError(
        'kernel_unavailable',
        `${kind} got an answer that is none of a kernel: expected a result of ${kind}, got another; see chio doctor`,
        { outcome: outcomeAnswered(kind) },
      )
    }
    return response.result.response as ResponseOf<K>
  }

  close(): void {
    this.#rpc.close()
  }

  async #request(requestId: string, body: Uint8Array, kind: KernelOperationKind): Promise<Uint8Array> {
    try {
      return await this.#rpc.request(requestId, body, deadlineAfter(this.#clock, CALL_BUDGET_MS))
    } catch (cause) {
      throw new BrokerError(
        'kernel_unavailable',
        `${kind} got no answer from the kernel: ${reasonUnanswered(cause)}`,
        { outcome: outcomeUnanswered(kind, cause), cause },
      )
    }
  }
}

/** The connection looks for the id in a response that is then judged: it is read once. */
const responses = new WeakMap<Uint8Array, KernelResponse>()

function readResponse(body: Uint8Array): KernelResponse {
  const response = responses.get(body) ?? decode(KernelResponse, body, 'kernel response')
  responses.set(body, response)
  return response
}

/** A socket that this session may not reach is another matter than a kernel that does not serve. */
function reasonUnanswered(cause: unknown): string {
  const code =
    cause instanceof Error && cause.cause instanceof Error ? (cause.cause as NodeJS.ErrnoException).code : ''
  if (code === 'EACCES')
    return "its socket's group is not active in this session; log in again, or see chio doctor"
  if (code === 'ENOENT' || code === 'ECONNREFUSED') return 'nobody serves its socket; start it'
  if (code !== undefined && code !== '')
    return `its socket could not be connected to (${code}); see chio doctor`
  return isBrokerError(cause) && cause.code === 'deadline_expired'
    ? `nothing came within ${CALL_BUDGET_MS / 1_000} s; see its log and chio status`
    : 'the connection was lost; see its log and chio status'
}

/** A start counts as sent even when nothing was, and a report is of an effect that took place. */
const ABOUT_AN_EFFECT: ReadonlySet<KernelOperationKind> = new Set(['call_reconcile', 'call_start', 'start'])

/** What an administrator changes is unknown once it was sent. */
function outcomeUnanswered(kind: KernelOperationKind, cause: unknown): 'not_started' | 'unknown' {
  if (ABOUT_AN_EFFECT.has(kind)) return 'unknown'
  const wasSent = isBrokerError(cause) && cause.outcome === 'unknown'
  return wasSent ? outcomeAnswered(kind) : 'not_started'
}

/** Of a call that reached the kernel, whose answer says nothing. */
function outcomeAnswered(kind: KernelOperationKind): 'not_started' | 'unknown' {
  return ABOUT_AN_EFFECT.has(kind) || ADMINISTRATIVE_OPERATIONS.has(kind) ? 'unknown' : 'not_started'
}

function refusalError(refusal: KernelRefusal): BrokerError {
  const code = Object.hasOwn(ERROR_CODES, refusal.code) ? (refusal.code as ErrorCode) : 'authorization_denied'
  const { operationId, outcome, receipt, sentence } = refusal
  return new BrokerError(code, sentence, {
    operationId: operationId ?? undefined,
    outcome,
    receiptId: receipt?.id,
  })
}
