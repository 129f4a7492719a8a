// Ordinary calls to the broker, one request a connection: register, release, status, replay,
// administration. Never carries a prepare_connection (that is prepare.ts) and never dispatches:
// `execute` here is a replay of what the broker recorded.
import type { AdminAuthorization as Authorization, AdminRequest } from '../protocol/administration.js'
import { AdminAuthorization } from '../protocol/administration.js'
import {
  checkRegisterAcknowledgement,
  checkReleaseAcknowledgement,
  RegisterAttemptAcknowledgement,
  ReleaseAttemptAcknowledgement,
} from '../protocol/acknowledgement.js'
import { AuthenticatedAttemptRequest, executeEnvelope } from '../protocol/attempt-request.js'
import type { Clock } from '../protocol/clock.js'
import { decode, encode } from '../protocol/codec.js'
import {
  type AuthenticatedIpcRequest,
  type BrokerOperation,
  decodeResponse,
  encodeRequest,
  type IpcResponse,
} from '../protocol/envelope.js'
import { ERROR_CODES, type ErrorCode } from '../protocol/error-codes.js'
import { BrokerError, isBrokerError } from '../protocol/errors.js'
import type { BrokerExecuteRequest } from '../protocol/execute-request.js'
import { DEFAULT_IPC_DEADLINE_MS } from '../protocol/limits.js'
import { type AttemptRegistration, SignedRegisterAttemptAuthorization } from '../protocol/registration.js'
import { AttemptStatus, AttemptStatusRequest, SlotStatus, SlotStatusRequest } from '../protocol/status.js'
import { exchangeFrame } from '../system/connect.js'
import { ConnectionEnded } from '../system/connection-ended.js'
import type { BrokerPins } from './broker-pins.js'
import { deadlineAfter } from '../system/deadline.js'

/** An attempt as its host holds it: the registration, its exact request, the authority's word. */
export interface AuthorizedAttempt {
  readonly registration: AttemptRegistration
  readonly request: BrokerExecuteRequest
  readonly authorization: SignedRegisterAttemptAuthorization
}

/** Encodes the request that carries an authorized attempt. */
export function attemptEnvelope(
  operation: BrokerOperation,
  attempt: AuthorizedAttempt,
  tenantScope: string,
): AuthenticatedIpcRequest {
  const { authorization, registration, request } = attempt
  return {
    authorization: encode(SignedRegisterAttemptAuthorization, authorization),
    operation,
    payload: encode(AuthenticatedAttemptRequest, { registration, request }),
    tenantScope,
  }
}

/** Turns a declined response into an error with the broker's own code. */
export function declined(response: IpcResponse): BrokerError {
  const wireCode = response.errorCode ?? 'invalid_request'
  const known = Object.hasOwn(ERROR_CODES, wireCode) ? (wireCode as ErrorCode) : 'authorization_denied'
  return new BrokerError(known, `${response.operation} declined by the broker: ${wireCode}`)
}

/** One broker, as its pins describe it. */
export class BrokerClient {
  readonly pins: BrokerPins
  readonly #clock: Clock

  constructor(pins: BrokerPins, clock: Clock) {
    this.pins = pins
    this.#clock = clock
  }

  /** Registers an attempt; an exact retry is answered like the first time. */
  async register(attempt: AuthorizedAttempt): Promise<RegisterAttemptAcknowledgement> {
    const envelope = attemptEnvelope('register_attempt', attempt, this.pins.tenantScope)
    const response = await this.#accepted(envelope, DEFAULT_IPC_DEADLINE_MS, readable)
    const acknowledgement = readable('register_attempt', () =>
      decode(RegisterAttemptAcknowledgement, response, 'register acknowledgement'),
    )
    checkRegisterAcknowledgement(acknowledgement, attempt.registration)
    return acknowledgement
  }

  /** Releases an attempt that was not dispatched. @throws BrokerError `conflict`: read the outcome instead. */
  async release(
    attempt: AuthorizedAttempt,
    budgetMs = DEFAULT_IPC_DEADLINE_MS,
  ): Promise<ReleaseAttemptAcknowledgement> {
    const envelope = attemptEnvelope('release_attempt', attempt, this.pins.tenantScope)
    const response = await this.#accepted(envelope, budgetMs)
    const acknowledgement = decode(ReleaseAttemptAcknowledgement, response, 'release acknowledgement')
    checkReleaseAcknowledgement(acknowledgement, attempt.registration)
    return acknowledgement
  }

  async slotStatus(budgetMs = DEFAULT_IPC_DEADLINE_MS): Promise<SlotStatus> {
    const payload = encode(SlotStatusRequest, { schema: 'chio.broker-slot-status-request.v1' })
    const answer = await this.#accepted(this.#plain('slot_status', payload), budgetMs, readable)
    return readable('slot_status', () => decode(SlotStatus, answer, 'slot status'))
  }

  async attemptStatus(attemptId: string, budgetMs = DEFAULT_IPC_DEADLINE_MS): Promise<AttemptStatus> {
    const payload = encode(AttemptStatusRequest, {
      attemptId,
      schema: 'chio.broker-attempt-status-request.v1',
    })
    const answer = await this.#accepted(this.#plain('attempt_status', payload), budgetMs)
    return decode(AttemptStatus, answer, 'attempt status')
  }

  /** Sends a request that an administrator signed; the answer is the operation's own document. */
  async administer(
    request: AdminRequest & { operation: BrokerOperation },
    authorization: Authorization,
  ): Promise<Uint8Array> {
    const { operation, payload, tenantScope } = request
    const signed = encode(AdminAuthorization, authorization)
    const envelope = { authorization: signed, operation, payload, tenantScope }
    return this.#accepted(envelope, DEFAULT_IPC_DEADLINE_MS, readable)
  }

  /**
   * Asks for the recorded outcome of a request. The broker never dispatches on this connection; while the
   * attempt is held or executing it waits, so the budget must cover that.
   */
  async replayResponse(
    request: BrokerExecuteRequest,
    budgetMs: number,
  ): Promise<{ response: IpcResponse; frame: Uint8Array }> {
    const frame = await this.#exchange(executeEnvelope(request, this.pins.tenantScope), budgetMs)
    return { response: decodeResponse(frame, 'execute'), frame }
  }

  #plain(operation: BrokerOperation, payload: Uint8Array): AuthenticatedIpcRequest {
    return { authorization: new Uint8Array(0), operation, payload, tenantScope: this.pins.tenantScope }
  }

  /** @param reading how the answer is read: as it is where the kernel's settlement tells a refusal from silence. */
  async #accepted(
    request: AuthenticatedIpcRequest,
    budgetMs = DEFAULT_IPC_DEADLINE_MS,
    reading: typeof readable = (_operation, read) => read(),
  ): Promise<Uint8Array> {
    const operation = request.operation as BrokerOperation
    const frame = await this.#exchange(request, budgetMs)
    const response = reading(operation, () => decodeResponse(frame, operation))
    if (!response.accepted) throw declined(response)
    return response.response
  }

  async #exchange(request: AuthenticatedIpcRequest, budgetMs: number): Promise<Uint8Array> {
    const { pins } = this
    const options = {
      path: pins.socketPath,
      ownerUid: pins.uid,
      socketGid: pins.socketGid,
      clock: this.#clock,
      unavailable: 'broker_unavailable',
      deadlineBootNs: deadlineAfter(this.#clock, budgetMs),
      maximumFrameBytes: pins.responseFrameBytes,
    } as const
    try {
      return await exchangeFrame(options, encodeRequest(request))
    } catch (cause) {
      throw cause instanceof ConnectionEnded ? unanswered(request.operation, cause) : cause
    }
  }
}

/** What an administrator changes is changed or not, whether or not the answer came. Nothing else here changes anything. */
const CHANGES: ReadonlySet<string> = new Set(['provision', 'rotate', 'disable', 'delete', 'revoke'])

/** The broker was reached and did not answer: it ended, its disk is full, or it does not hear this peer. */
function unanswered(operation: string, cause: ConnectionEnded): BrokerError {
  return new BrokerError(
    'broker_unavailable',
    `${operation} got no answer from the broker: its connection ended (${cause.ending}) after ${cause.receivedBytes} bytes; see its log and chio status`,
    { outcome: CHANGES.has(operation) ? 'unknown' : 'not_started', cause },
  )
}

/**
 * Reads an answer of the broker. One that cannot be read is no answer: it says nothing of what was done, and nothing in
 * the request is at fault.
 */
export function readable<T>(operation: BrokerOperation, read: () => T): T {
  try {
    return read()
  } catch (cause) {
    if (!isBrokerError(cause)) throw cause
    throw new BrokerError(
      'broker_unavailable',
      `${operation} got an answer that is none of a broker: ${cause.message}; see chio doctor`,
      { outcome: CHANGES.has(operation) ? 'unknown' : 'not_started', cause },
    )
  }
}
