// Owns the fuzzing of the frame reader: however a stream is cut, the result is the one that its bytes alone
// decide; a length is compared with its limits before anything is kept; surplus is refused.
import { isBrokerError } from '../../protocol/errors.js'
import { encodeFrame, FrameReader } from '../../protocol/frame.js'
import { labelled, readLabel } from './label.js'
import { mutateBytes } from './mutate-bytes.js'
import { Random, seedOf } from './random.js'
import { accepted, FuzzFinding, type FuzzTarget, refusedAs, type Verdict } from './target.js'

const MAXIMUMS = [1, 4, 64, 4_096, 0xffff_ffff]
/** Longer streams are not cut into single bytes. */
const SINGLE_BYTES = 600

export const frameTarget: FuzzTarget = {
  name: 'frame',
  reads: 'frames, in any pieces',
  maximumInputBytes: 8_192,
  seeds,
  mutate(base, other, random) {
    const { label, rest } = readLabel(base)
    const limits = random.once(6) ? limitsOf(random, rest.length) : label
    return labelled(limits, mutateBytes(rest, readLabel(other).rest, random))
  },
  check: checkFrame,
}

function seeds(): Uint8Array[] {
  const frames = [1, 2, 3, 4, 64, 65, 300, 4_096].map(length =>
    encodeFrame(new Uint8Array(length).fill(length)),
  )
  return [...frames, new Uint8Array(0), new Uint8Array(4), Buffer.from('ffffffff00', 'hex')].flatMap(stream =>
    ['4096', '64', `4096 ${Math.max(1, stream.length - 4)}`].map(limits => labelled(limits, stream)),
  )
}

function limitsOf(random: Random, streamBytes: number): string {
  const maximum = random.once(2) ? random.pick(MAXIMUMS) : Math.max(1, streamBytes - 4 + random.below(3) - 1)
  return random.once(2) ? `${maximum}` : `${maximum} ${Math.max(1, streamBytes - 4 + random.below(3) - 1)}`
}

interface Limits {
  readonly maximum: number
  readonly exact: number | undefined
}

/** `MAXIMUM` or `MAXIMUM EXACT`; what is neither stands for a common one. */
export function readLimits(label: string): Limits {
  const [maximum = 0, exact] = label.split(' ').map(Number)
  const isLength = (value: number | undefined): value is number =>
    value !== undefined && Number.isInteger(value) && value >= 1 && value <= 0xffff_ffff
  return { maximum: isLength(maximum) ? maximum : 4_096, exact: isLength(exact) ? exact : undefined }
}

/** What the bytes alone decide. */
export function expectedOf(
  stream: Uint8Array,
  { maximum, exact }: Limits,
): 'body' | 'incomplete' | 'refused' {
  if (stream.length < 4) return 'incomplete'
  const length = Buffer.from(stream.subarray(0, 4)).readUInt32BE()
  if (length < 1 || length > maximum || (exact !== undefined && length !== exact)) return 'refused'
  if (stream.length > length + 4) return 'refused'
  return stream.length < length + 4 ? 'incomplete' : 'body'
}

function checkFrame(input: Uint8Array): Verdict {
  const { label, rest } = readLabel(input)
  const limits = readLimits(label)
  // The limit of a real reader bounds what is set aside; a fuzz run has no gigabytes.
  if (expectedLength(rest) > 1_048_576 && expectedLength(rest) <= limits.maximum) {
    return { word: 'not tried', signal: 'not tried' }
  }
  const expected = expectedOf(rest, limits)
  const verdicts = piecesOf(rest).map(pieces => readPieces(pieces, limits, rest))
  for (const { word } of verdicts) {
    const said = word === 'invalid_request' ? 'refused' : word === 'accepted' ? 'body' : word
    if (said !== expected)
      throw new FuzzFinding(`a frame reader said ${said} of a stream that is ${expected}`)
  }
  return verdicts[0] as Verdict
}

function expectedLength(stream: Uint8Array): number {
  return stream.length < 4 ? 0 : Buffer.from(stream.subarray(0, 4)).readUInt32BE()
}

/** Whole, cut by chance, and byte by byte. */
export function piecesOf(stream: Uint8Array): Uint8Array[][] {
  const random = new Random(seedOf(stream))
  const byChance: Uint8Array[] = []
  for (let at = 0; at < stream.length; ) {
    const length = random.once(8) ? 0 : 1 + random.below(random.once(3) ? stream.length : 6)
    byChance.push(stream.subarray(at, at + length))
    at += length
  }
  const ways = [[stream], byChance]
  if (stream.length <= SINGLE_BYTES) ways.push(Array.from(stream, byte => Uint8Array.of(byte)))
  return ways
}

function readPieces(pieces: readonly Uint8Array[], { maximum, exact }: Limits, stream: Uint8Array): Verdict {
  const reader = new FrameReader(maximum, exact === undefined ? {} : { exactBytes: exact })
  let body: Uint8Array | undefined
  try {
    for (const piece of pieces) body = reader.push(piece) ?? body
  } catch (error) {
    assertSpent(reader)
    return refusedAs(error, 'invalid_request')
  }
  if (body === undefined) return { word: 'incomplete', signal: `incomplete ${Math.min(reader.received, 5)}` }
  if (Buffer.compare(body, stream.subarray(4)) !== 0) throw new FuzzFinding('a frame reader changed the body')
  if (reader.received !== stream.length) throw new FuzzFinding('a frame reader counted other bytes than came')
  return accepted(`${Math.floor(Math.log2(body.length))}`)
}

/** After a refusal nothing is taken any more. */
function assertSpent(reader: FrameReader): void {
  try {
    reader.push(Uint8Array.of(0))
  } catch (error) {
    if (isBrokerError(error)) return
    throw error
  }
  throw new FuzzFinding('a frame reader went on after it had refused')
}
