// Case 2: a preparation without the authority's word is declined, a second one is declined while the slot
// is held, and a frame that differs in operation, tenant, authorization or payload closes the stream
// without a byte; nothing reaches the provider and nothing is decrypted.
import { randomBytes } from 'node:crypto'
import { closeDescriptor, readFrame, writeFully } from '../native/index.js'
import { systemClock } from '../native/clock.js'
import { executeEnvelope } from '../protocol/attempt-request.js'
import { type AuthenticatedIpcRequest, encodeRequest } from '../protocol/envelope.js'
import { encodeFrame } from '../protocol/frame.js'
import { signingKey } from '../protocol/keys.js'
import type { BrokerBench } from './broker-bench.js'
import { CaseFailure, expectEqual } from './case-result.js'
import type { MintedAttempt } from './minted-attempt.js'

const ANSWER_BUDGET_NS = 2_000_000_000n
const FREE_BOUND_MS = 1_000

/** Changes that keep the frame's length, so that only the digest can tell. */
const SUBSTITUTIONS: Record<string, (envelope: AuthenticatedIpcRequest) => AuthenticatedIpcRequest> = {
  operation: envelope => ({ ...envelope, operation: 'executf' }),
  tenant: envelope => ({ ...envelope, tenantScope: swapLast(envelope.tenantScope) }),
  authorization: envelope => ({ ...envelope, authorization: swapDigit(envelope.authorization) }),
  payload: envelope => ({ ...envelope, payload: swapDigit(envelope.payload) }),
}

export async function refusesSubstitution(bench: BrokerBench): Promise<string> {
  const before = await bench.touches()
  expectEqual(
    'unauthorized preparation',
    'authorization_denied',
    await bench.declinedCode(await unauthorized(bench)),
  )
  expectEqual('slot after it', 'free', await bench.slotState())
  await expectSecondDeclined(bench)
  for (const [member, substitute] of Object.entries(SUBSTITUTIONS))
    await expectRefused(bench, member, substitute)
  await bench.expectUntouched(before)
  const members = Object.keys(SUBSTITUTIONS).join(', ')
  return `unauthorized declined, second declined as conflict, another ${members} closed the stream without a byte; 0 provider requests, 0 decryptions`
}

async function unauthorized(bench: BrokerBench): Promise<Pick<MintedAttempt, 'prepare'>> {
  const attempt = await bench.registered()
  const stranger = signingKey(randomBytes(32))
  const authorization = bench.mint.sign('prepare', attempt.registration, stranger)
  return { prepare: { ...attempt.prepare, authorization } }
}

async function expectSecondDeclined(bench: BrokerBench): Promise<void> {
  const [first, second] = [await bench.registered(), await bench.registered()]
  const stream = await bench.prepare(first)
  expectEqual('second preparation', 'conflict', await bench.declinedCode(second))
  stream.close()
  await bench.untilFree(FREE_BOUND_MS)
  expectEqual('state of the declined attempt', 'registered', (await bench.ending(second)).state)
  await bench.session.broker.release(second.release)
}

async function expectRefused(
  bench: BrokerBench,
  member: string,
  substitute: (envelope: AuthenticatedIpcRequest) => AuthenticatedIpcRequest,
): Promise<void> {
  const attempt = await bench.registered()
  const stream = await bench.prepare(attempt)
  const exact = executeEnvelope(attempt.request, bench.session.pins.broker.tenantScope)
  const frame = encodeFrame(encodeRequest(substitute(exact)))
  expectEqual(`length of the substituted ${member}`, stream.frame.length, frame.length)
  const answer = await submit(stream.takeDescriptor(), frame)
  if (answer !== null)
    throw new CaseFailure(`substituted ${member}: expected the end of the stream, got ${answer.length} bytes`)
  await bench.untilFree(FREE_BOUND_MS)
  const ending = await bench.ending(attempt)
  expectEqual(`attempt after a substituted ${member}`, 'failed', ending.state)
  if (ending.expectedFrameSha256 === null || ending.expectedFrameSha256 === ending.submittedFrameSha256) {
    throw new CaseFailure(`record of a substituted ${member}: expected two digests that differ`)
  }
}

/** Submits raw bytes and reads what comes back; null is the end of the stream. */
async function submit(descriptor: number, frame: Uint8Array): Promise<Uint8Array | null> {
  const deadlineBootNs = systemClock.bootNs() + ANSWER_BUDGET_NS
  try {
    await writeFully(descriptor, frame, deadlineBootNs)
    return await readFrame(descriptor, { maximumFrameBytes: 1024 * 1024, deadlineBootNs })
  } catch (error) {
    // The broker may close while the last bytes are on their way: that too is an end without an answer.
    if (['ECONNRESET', 'EPIPE'].includes((error as NodeJS.ErrnoException).code ?? '')) return null
    throw error
  } finally {
    closeDescriptor(descriptor)
  }
}

function swapLast(text: string): string {
  return text.slice(0, -1) + (text.endsWith('x') ? 'y' : 'x')
}

/** Another decimal digit somewhere in the document: same length, another meaning. */
function swapDigit(bytes: Uint8Array): Uint8Array {
  const copy = Uint8Array.from(bytes)
  const at = copy.findLastIndex(byte => byte >= 0x31 && byte <= 0x38)
  copy[at] = (copy[at] as number) + 1
  return copy
}
