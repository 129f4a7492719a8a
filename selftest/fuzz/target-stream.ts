// Owns the fuzzing of frames on real Unix streams: the framed connection of the daemons and the addon's own
// reader get the same bytes in the same pieces, and say what the bytes alone decide. No descriptor is left open.
import { readdirSync, writeSync } from 'node:fs'
import { Socket } from 'node:net'
import { setImmediate as turnOfLoop } from 'node:timers/promises'
import { closeDescriptor, readFrame, shutdownWrite, socketPair } from '../../native/index.js'
import { systemClock } from '../../native/clock.js'
import { ConnectionEnded } from '../../system/connection-ended.js'
import { FramedConnection } from '../../system/framed-connection.js'
import { readLabel } from './label.js'
import { expectedOf, frameTarget, piecesOf, readLimits } from './target-frame.js'
import { accepted, FuzzFinding, type FuzzTarget, type Verdict } from './target.js'

const PATIENCE_NS = 20_000_000_000n
/** Handed to readers as a limit; the real ones are far below it. */
const MAXIMUM_FRAME_BYTES = 1_048_576
/** Streams, timers and threads of the addon come and go; what leaks grows without end. */
const MAXIMUM_SURPLUS_DESCRIPTORS = 32

let inputs = 0
let descriptorsAtFirst: number | undefined

export const streamTarget: FuzzTarget = {
  ...frameTarget,
  name: 'stream',
  reads: 'frames on real sockets',
  check: checkStream,
}

async function checkStream(input: Uint8Array): Promise<Verdict> {
  const { label, rest } = readLabel(input)
  const limits = readLimits(label)
  const maximum = Math.min(limits.maximum, MAXIMUM_FRAME_BYTES)
  const pieces = piecesOf(rest)[1] as Uint8Array[]
  const ours = await connectionReads(pieces, maximum, limits.exact)
  const expected = expectedOf(rest, { maximum, exact: limits.exact })
  if (ours !== expected) throw new FuzzFinding(`a connection said ${ours} of a stream that is ${expected}`)
  const native = await addonReads(pieces, maximum)
  const nativeExpected = expectedOfAddon(rest, maximum)
  if (native !== nativeExpected)
    throw new FuzzFinding(`the addon said ${native} of a stream that is ${nativeExpected}`)
  assertNoneLeft()
  return ours === 'body' ? accepted(`${pieces.length}`) : { word: ours, signal: `${ours} ${pieces.length}` }
}

/** One frame is asked of it, whatever follows; no length is bound; an empty body is a body there, and no document. */
function expectedOfAddon(stream: Uint8Array, maximum: number): Said {
  const length = stream.length < 4 ? -1 : Buffer.from(stream).readUInt32BE()
  if (length === 0) return 'body'
  return expectedOf(length < 0 ? stream : stream.subarray(0, 4 + length), { maximum, exact: undefined })
}

type Said = ReturnType<typeof expectedOf>

async function connectionReads(
  pieces: readonly Uint8Array[],
  maximum: number,
  exact: number | undefined,
): Promise<Said> {
  const [far, near] = socketPair('stream')
  const socket = new Socket({ fd: near, allowHalfOpen: true })
  const connection = new FramedConnection(socket, { clock: systemClock, mode: 'exchange' })
  try {
    const said = connection
      .readFrame({
        maximumFrameBytes: maximum,
        deadlineBootNs: systemClock.bootNs() + PATIENCE_NS,
        ...(exact !== undefined && { exactBytes: exact }),
      })
      .then(body => saidOfBody(body, pieces), saidOfEnding)
    await say(far, pieces)
    const first = await said
    return first === 'body' && (await hasSurplus(connection, pieces)) ? 'refused' : first
  } finally {
    connection.closeNow()
    closeDescriptor(far)
    await new Promise(resolve => (socket.closed ? resolve(undefined) : socket.once('close', resolve)))
  }
}

function saidOfBody(body: Uint8Array, pieces: readonly Uint8Array[]): Said {
  const sent = Buffer.concat(pieces).subarray(4, 4 + body.length)
  if (Buffer.compare(sent, body) !== 0) throw new FuzzFinding('a frame arrived with other bytes')
  return 'body'
}

function saidOfEnding(error: unknown): Said {
  if (!(error instanceof ConnectionEnded)) throw error
  if (error.ending === 'eof' || error.ending === 'reset') return 'incomplete'
  if (error.ending === 'length' || error.ending === 'surplus') return 'refused'
  throw new FuzzFinding(`a connection ended by itself: ${error.ending}`)
}

/** Bytes behind a complete frame end the connection, also when they come after the frame was handed over. */
async function hasSurplus(connection: FramedConnection, pieces: readonly Uint8Array[]): Promise<boolean> {
  const bytes = Buffer.concat(pieces)
  if (bytes.length === 4 + bytes.readUInt32BE()) return false
  const ending = await connection.ended
  if (ending !== 'surplus') throw new FuzzFinding(`surplus ended a connection as ${ending}`)
  return true
}

async function addonReads(pieces: readonly Uint8Array[], maximum: number): Promise<Said> {
  const [far, near] = socketPair('stream')
  try {
    const said = readFrame(near, {
      maximumFrameBytes: maximum,
      deadlineBootNs: systemClock.bootNs() + PATIENCE_NS,
    }).then(
      body => (body === null ? 'incomplete' : saidOfBody(body, pieces)),
      (error: unknown) => saidOfCode(error),
    )
    await say(far, pieces)
    return await said
  } finally {
    closeDescriptor(far)
    closeDescriptor(near)
  }
}

function saidOfCode(error: unknown): Said {
  const { code } = error as NodeJS.ErrnoException
  if (code === 'ETRUNC') return 'incomplete'
  if (code === 'EMSGSIZE' || code === 'EBADMSG') return 'refused'
  throw error
}

/** Every piece in a write of its own, with turns of the loop between some; then the end of the stream. */
async function say(descriptor: number, pieces: readonly Uint8Array[]): Promise<void> {
  try {
    for (const [index, piece] of pieces.entries()) {
      if (piece.length > 0) writeSync(descriptor, piece)
      if (index % 3 === 0) await turnOfLoop()
    }
    shutdownWrite(descriptor)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    // The reader may have refused and closed before the last piece.
    if (code !== 'EPIPE' && code !== 'ECONNRESET' && code !== 'ENOTCONN') throw error
  }
}

function assertNoneLeft(): void {
  if (inputs++ % 500 !== 0) return
  const open = readdirSync('/proc/self/fd').length
  descriptorsAtFirst ??= open
  if (open > descriptorsAtFirst + MAXIMUM_SURPLUS_DESCRIPTORS)
    throw new FuzzFinding('descriptors are left open')
}
