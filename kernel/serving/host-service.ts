// Owns: the conversation with one host or administrator: frames in, one answer a frame, in order.
// Must never: let anything that a client sends stop the kernel, or tell it of a fault more than the closed end.
// Source: the kernel's host socket; refusals are values, faults close the connection.
import type { Clock } from '../../protocol/clock.js'
import { decodeSliced, encode } from '../../protocol/codec.js'
import { BrokerError, isBrokerError } from '../../protocol/errors.js'
import {
  ADMINISTRATIVE_OPERATIONS,
  KERNEL_RPC_RESPONSE_SCHEMA,
  type KernelRefusal,
  KernelRequest,
  KernelResponse,
} from '../../protocol/kernel-rpc.js'
import { DEFAULT_IPC_DEADLINE_MS, MAXIMUM_REQUEST_FRAME_BYTES } from '../../protocol/limits.js'
import type { Cutpoint } from '../../system/cutpoints.js'
import type { CallPlaces, LeaveCall } from '../../system/call-places.js'
import { endedBetweenFrames } from '../../system/connection-ended.js'
import type { FramedConnection } from '../../system/framed-connection.js'
import type { PeerIdentity } from '../../system/peer.js'
import { deadlineAfter } from '../../system/deadline.js'
import { faultFields, saysOfMachine } from '../fault-fields.js'
import type { Kernel } from '../kernel.js'
import type { Caller, KernelLog } from '../kernel-context.js'
import { answerOperation } from './operation-table.js'
import type { Outstanding } from './outstanding.js'
import { RefusedDecision } from '../log/refused-decision.js'

/** A host keeps its connection from reserve to finalize: longer than the longest provider timeout. */
const IDLE_MS = 300_000
const MAXIMUM_SENTENCE_CHARACTERS = 500

export interface HostConversation {
  readonly atCutpoint: Cutpoint
  readonly kernel: Kernel
  readonly outstanding: Outstanding
  readonly caller: Caller
  readonly calls: CallPlaces
  readonly connection: FramedConnection
  readonly peer: PeerIdentity
  readonly clock: Clock
  readonly tenantScope: string
  readonly log: KernelLog
}

/** Serves until the client leaves or errs. */
export async function serveHost(conversation: HostConversation): Promise<void> {
  const { connection, caller, log } = conversation
  try {
    for (;;) await serveOne(conversation)
  } catch (error) {
    if (endedBetweenFrames(error)) return
    const level = isFault(error) ? 'error' : 'warn'
    log({ level, event: 'host_connection_closed', uid: caller.uid, ...faultFields(error) })
  } finally {
    connection.closeNow()
  }
}

async function serveOne(conversation: HostConversation): Promise<void> {
  const { clock, connection } = conversation
  const body = await connection.readFrame({
    // Whoever connects has something to ask.
    deadlineBootNs: deadlineAfter(clock, connection.wasHeard ? IDLE_MS : DEFAULT_IPC_DEADLINE_MS),
    maximumFrameBytes: MAXIMUM_REQUEST_FRAME_BYTES,
    onFirstByte: () => deadlineAfter(clock, DEFAULT_IPC_DEADLINE_MS),
  })
  const request = await decodeSliced(KernelRequest, body, 'kernel request', nextTurn)
  // Before the turn: who waits for one must not keep the room that others' frames need to be read.
  connection.authenticated()
  const leave = await turnOf(conversation, request)
  try {
    await serveRequest(conversation, request)
  } finally {
    leave?.()
  }
}

/** Calls of one client wait for each other beyond a number; what administers or only looks waits for nobody. */
async function turnOf(
  { calls, peer }: HostConversation,
  { operation }: KernelRequest,
): Promise<LeaveCall | undefined> {
  if (operation.kind === 'status' || ADMINISTRATIVE_OPERATIONS.has(operation.kind)) return undefined
  return calls.turn(peer)
}

async function serveRequest(conversation: HostConversation, request: KernelRequest): Promise<void> {
  const { clock, connection, peer } = conversation
  if (!peer.isAlive())
    throw new BrokerError(
      'client_gone',
      'request refused: expected a connector that lives, got one that ended',
    )
  conversation.atCutpoint(`${request.operation.kind}.received`)
  await conversation.outstanding.answering(async () => {
    const response = await answer(conversation, request)
    await connection.writeFrame(
      encode(KernelResponse, response),
      deadlineAfter(clock, DEFAULT_IPC_DEADLINE_MS),
    )
  })
  conversation.atCutpoint(`${request.operation.kind}.answered`)
}

async function answer(conversation: HostConversation, request: KernelRequest): Promise<KernelResponse> {
  const { requestId } = request
  const schema = KERNEL_RPC_RESPONSE_SCHEMA
  try {
    conversation.outstanding.assertServing()
    checkEnvelope(conversation, request)
    const { caller, kernel } = conversation
    const result = await answerOperation(kernel, caller, request.operation, request.authorization)
    return { refusal: null, requestId, result, schema }
  } catch (error) {
    if (!isBrokerError(error) || isFault(error)) throw error
    return { refusal: refusalOf(error), requestId, result: null, schema }
  }
}

function checkEnvelope(conversation: HostConversation, request: KernelRequest): void {
  if (request.tenantScope !== conversation.tenantScope) {
    throw new BrokerError(
      'authorization_denied',
      "request refused: expected this kernel's tenant, got another",
    )
  }
  if (request.authorization !== null && !ADMINISTRATIVE_OPERATIONS.has(request.operation.kind)) {
    throw new BrokerError(
      'invalid_request',
      `${request.operation.kind} refused: expected no administrator's authorization, got one`,
    )
  }
}

function refusalOf(error: BrokerError): KernelRefusal {
  return {
    code: error.code,
    operationId: error.operationId ?? null,
    outcome: error.outcome,
    receipt: error instanceof RefusedDecision ? error.receipt : null,
    sentence: error.message.slice(0, MAXIMUM_SENTENCE_CHARACTERS),
  }
}

function isFault(error: unknown): boolean {
  return !isBrokerError(error) || saysOfMachine(error)
}

function nextTurn(): Promise<void> {
  return new Promise(resolve => {
    setImmediate(resolve)
  })
}
