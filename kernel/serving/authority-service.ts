// Owns: the conversation with the broker: signed questions in, signed answers out, each for itself.
// Must never: answer a question that is not the pinned broker's, or let a slow one hold up the next.
// Source: the authority RPC (`chio.broker-authority-rpc.v1`), framing and signatures.
import {
  type AuthorityOperation,
  SignedAuthorityRequest,
  SignedAuthorityResponse,
  signAuthorityResponse,
  verifyAuthorityRequest,
} from '../../protocol/authority-rpc.js'
import { type Clock, unixSeconds } from '../../protocol/clock.js'
import { decode, encode } from '../../protocol/codec.js'
import { DEFAULT_IPC_DEADLINE_MS } from '../../protocol/limits.js'
import { endedBetweenFrames } from '../../system/connection-ended.js'
import type { FramedConnection } from '../../system/framed-connection.js'
import type { PeerIdentity } from '../../system/peer.js'
import { answerQuestion } from './authority-answers.js'
import { deadlineAfter } from '../../system/deadline.js'
import { faultFields } from '../fault-fields.js'
import type { KernelContext } from '../kernel-context.js'

/** The longest question names 128 revocation ids of 512 bytes, escaped. */
export const MAXIMUM_AUTHORITY_FRAME_BYTES = 256 * 1024
/** The broker keeps its connection as long as it runs and asks when it has something to execute. */
const IDLE_MS = 3_600_000
/** Questions of one connection that are being answered; beyond it the next is read later. */
const MAXIMUM_OUTSTANDING = 32

/** Serves until the broker leaves or errs. */
export async function serveAuthority(
  context: KernelContext,
  connection: FramedConnection,
  peer: PeerIdentity,
): Promise<void> {
  const outstanding = new Set<Promise<void>>()
  try {
    while (peer.isAlive()) {
      const body = await readQuestion(context.clock, connection)
      const answered = context.outstanding
        .answering(() => answerFrame(context, connection, body))
        .finally(() => outstanding.delete(answered))
      outstanding.add(answered)
      // A question that is refused ends the connection; it must not become a rejection that nobody awaits.
      answered.catch((error: unknown) => close(context, connection, error))
      if (outstanding.size >= MAXIMUM_OUTSTANDING) await Promise.race(outstanding)
    }
  } catch (error) {
    close(context, connection, error)
  } finally {
    await Promise.allSettled(outstanding)
    connection.closeNow()
  }
}

function readQuestion(clock: Clock, connection: FramedConnection): Promise<Uint8Array> {
  return connection.readFrame({
    deadlineBootNs: deadlineAfter(clock, connection.wasHeard ? IDLE_MS : DEFAULT_IPC_DEADLINE_MS),
    maximumFrameBytes: MAXIMUM_AUTHORITY_FRAME_BYTES,
    onFirstByte: () => deadlineAfter(clock, DEFAULT_IPC_DEADLINE_MS),
  })
}

async function answerFrame(
  context: KernelContext,
  connection: FramedConnection,
  body: Uint8Array,
): Promise<void> {
  const { clock, config, keys } = context
  const decoded = decode(SignedAuthorityRequest, body, 'authority question')
  const pins = { broker: config.broker.receiptKey, clockSkewSeconds: config.clockSkewSeconds }
  const question = verifyAuthorityRequest(decoded, pins, unixSeconds(clock))
  const { operation } = question.body
  const named = lastQuestionOf(operation)
  context.atCutpoint(`${named}.received`)
  const result = await answerQuestion(context, operation)
  const response = signAuthorityResponse(question, result, unixSeconds(clock), keys.authority)
  const deadlineBootNs = deadlineAfter(clock, DEFAULT_IPC_DEADLINE_MS)
  await connection.writeFrame(encode(SignedAuthorityResponse, response), deadlineBootNs)
  context.atCutpoint(`${named}.answered`)
}

/** Several questions in one frame are known by the last: what is revoked, or whether the hold is captured. */
function lastQuestionOf(operation: AuthorityOperation): string {
  if (operation.kind !== 'questions') return operation.kind
  return operation.request.questions.at(-1)?.kind ?? operation.kind
}

function close(context: KernelContext, connection: FramedConnection, error: unknown): void {
  if (connection.ending === undefined && !endedBetweenFrames(error)) {
    context.log({ level: 'warn', event: 'authority_connection_closed', ...faultFields(error) })
  }
  connection.closeNow()
}
