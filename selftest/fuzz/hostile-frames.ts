// Owns a flood of random and changed frames at a daemon's socket: what each connection saw, and that it saw an end.
// A frame that is neither answered nor closed in time is an error, not a count.
import { closeDescriptor, connectUnix, readToEnd, shutdownWrite, writeFully } from '../../native/index.js'
import { systemClock } from '../../native/clock.js'
import { decode, encode } from '../../protocol/codec.js'
import { AuthenticatedIpcRequest } from '../../protocol/envelope.js'
import { isBrokerError } from '../../protocol/errors.js'
import { encodeFrame } from '../../protocol/frame.js'
import { mutateBytes } from './mutate-bytes.js'
import { mutateJson } from './mutate-json.js'
import { Random } from './random.js'

/** Far longer than any budget of a daemon, so that a busy machine is not taken for a daemon that hangs. */
const PATIENCE_NS = 120_000_000_000n
const MAXIMUM_ANSWER_BYTES = 33_554_432
const AT_ONCE = 8

export interface FloodTerms {
  readonly path: string
  /** Bodies that the daemon would take. */
  readonly valid: readonly Uint8Array[]
  readonly count: number
  readonly seed: number
}

export interface FloodResult {
  readonly answered: number
  /** Closed without a byte. */
  readonly closed: number
}

/** Says every frame on a connection of its own, finishes writing, and reads to the end. */
export async function flood({ path, valid, count, seed }: FloodTerms): Promise<FloodResult> {
  const random = new Random(seed)
  let left = count
  let answered = 0
  const sayInTurn = async (): Promise<void> => {
    while (left-- > 0) {
      const answer = await say(path, hostileFrame(valid, random))
      if (answer.length > 0) answered += 1
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, sayInTurn))
  return { answered, closed: count - answered }
}

/** Nonsense, a frame of nonsense, a changed document in a right frame, a right document in a wrong one. */
function hostileFrame(valid: readonly Uint8Array[], random: Random): Uint8Array {
  const body = random.pick(valid)
  switch (random.below(8)) {
    case 0:
      return random.bytes(1 + random.below(400))
    case 1:
      return encodeFrame(random.bytes(1 + random.below(400)))
    case 2:
      return mutateBytes(encodeFrame(body), random.pick(valid), random)
    case 3:
    case 4:
      return framed(mutatePayload(body, random.pick(valid), random))
    default:
      return framed(mutateJson(body, random.pick(valid), random))
  }
}

/** A change may have left nothing, which no frame can carry. */
function framed(body: Uint8Array): Uint8Array {
  return body.length === 0 ? new Uint8Array(4) : encodeFrame(body)
}

/** Changes the document inside an envelope, so that the envelope itself is right. */
function mutatePayload(body: Uint8Array, other: Uint8Array, random: Random): Uint8Array {
  const envelope = envelopeOf(body)
  if (envelope === undefined) return mutateJson(body, other, random)
  const member = random.once(3) ? 'authorization' : 'payload'
  return encode(AuthenticatedIpcRequest, {
    ...envelope,
    [member]: mutateJson(envelope[member], envelopeOf(other)?.[member] ?? other, random),
  })
}

function envelopeOf(body: Uint8Array): AuthenticatedIpcRequest | undefined {
  try {
    return decode(AuthenticatedIpcRequest, body, 'envelope')
  } catch (error) {
    if (isBrokerError(error)) return undefined
    throw error
  }
}

/** Says these bytes, finishes writing, and reads to the end. @returns nothing where it was closed. */
export async function say(path: string, bytes: Uint8Array): Promise<Uint8Array> {
  const deadline = systemClock.bootNs() + PATIENCE_NS
  const descriptor = await connectUnix(path, deadline)
  try {
    await writeFully(descriptor, bytes, deadline)
    shutdownWrite(descriptor)
    return await readToEnd(descriptor, MAXIMUM_ANSWER_BYTES, deadline)
  } catch (error) {
    // Closed before the last byte was written, or with some of them unread: it has ended, without an answer.
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EPIPE' || code === 'ECONNRESET' || code === 'ENOTCONN') return new Uint8Array(0)
    throw error
  } finally {
    closeDescriptor(descriptor)
  }
}
