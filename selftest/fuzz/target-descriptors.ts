// Owns the fuzzing of messages that carry descriptors: any number sent, any number expected, any payload. Exactly
// what was expected arrives, open and the right one, or a code says why not; nothing is left open in any case.
import { closeSync, fstatSync, openSync, readdirSync } from 'node:fs'
import {
  closeDescriptor,
  receiveDescriptors,
  type ReceivedDescriptors,
  sendDescriptors,
  setPassCredentials,
  socketPair,
} from '../../native/index.js'
import { mutateBytes } from './mutate-bytes.js'
import { accepted, FuzzFinding, type FuzzTarget, type Verdict } from './target.js'

const HEADER_BYTES = 5
const MAXIMUM_SENT = 254
const CODES = new Set([
  'EAGAIN',
  'ECTRUNC',
  'EMSGSIZE',
  'EFEWFD',
  'EMANYFD',
  'EFOREIGNCMSG',
  'EINVAL',
  'ETOOMANYREFS',
])

export const descriptorTarget: FuzzTarget = {
  name: 'descriptors',
  reads: 'messages that carry descriptors',
  maximumInputBytes: 70_000,
  seeds: () =>
    [
      [2, 2, 0, 8, 0],
      [0, 0, 0, 8, 0],
      [253, 253, 1, 0, 0],
      [1, 2, 0, 64, 1],
      [3, 2, 0, 64, 2],
      [2, 2, 0, 1, 3],
    ].map(header => Uint8Array.from([...header, 0x50, 0x52, 0x45, 0x50])),
  mutate: mutateBytes,
  check: checkDescriptors,
}

/** Five bytes say how many are sent and expected, the limit of the payload and the kind of socket. */
function checkDescriptors(input: Uint8Array): Verdict {
  const [sent = 0, expected = 0, high = 0, low = 0, kind = 0] = input
  const payload = input.subarray(HEADER_BYTES)
  if (payload.length === 0 || sent > MAXIMUM_SENT - 1 || expected > MAXIMUM_SENT - 1) {
    return { word: 'not tried', signal: 'not tried' }
  }
  const before = openDescriptors()
  const order = {
    sent,
    expected,
    maximumPayloadBytes: Math.max(1, high * 256 + low),
    isStream: kind % 2 === 1,
  }
  const verdict = onFreshPair(order, kind % 4 > 1, payload)
  if (openDescriptors() !== before) throw new FuzzFinding('a descriptor of a message is left open')
  return verdict
}

function onFreshPair(order: Order, withCredentials: boolean, payload: Uint8Array): Verdict {
  const pair = socketPair(order.isStream ? 'stream' : 'seqpacket')
  const file = openSync('/dev/null', 'r')
  try {
    if (withCredentials) setPassCredentials(pair[1], true)
    return passThrough(pair, file, payload, order)
  } finally {
    closeSync(file)
    for (const end of pair) closeDescriptor(end)
  }
}

interface Order {
  readonly sent: number
  readonly expected: number
  readonly maximumPayloadBytes: number
  readonly isStream: boolean
}

function passThrough(
  pair: readonly [number, number],
  file: number,
  payload: Uint8Array,
  order: Order,
): Verdict {
  const { sent, expected, maximumPayloadBytes } = order
  try {
    sendDescriptors(
      pair[0],
      payload,
      Array.from({ length: sent }, () => file),
    )
    const received = receiveDescriptors(pair[1], { maximumPayloadBytes, descriptors: expected })
    assertRight(received, file, payload, order)
    return accepted(`${sent > 0} ${received.credentials !== null}`)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (error instanceof FuzzFinding || code === undefined || !CODES.has(code)) throw error
    const isRight = sent === expected && payload.length <= maximumPayloadBytes
    if (isRight && code !== 'EAGAIN' && code !== 'EMSGSIZE')
      throw new FuzzFinding(`a right message was refused: ${code}`)
    return { word: code, signal: `${code} ${sent > expected} ${payload.length > maximumPayloadBytes}` }
  }
}

function assertRight(received: ReceivedDescriptors, file: number, payload: Uint8Array, order: Order): void {
  const { sent, expected, maximumPayloadBytes, isStream } = order
  const device = fstatSync(file).rdev
  const areRight = received.descriptors.map(descriptor => fstatSync(descriptor).rdev === device)
  for (const descriptor of received.descriptors) closeDescriptor(descriptor)
  if (sent !== expected || areRight.length !== expected || areRight.includes(false))
    throw new FuzzFinding('a message was taken with other descriptors than were expected')
  const { length } = received.payload
  // A stream has no messages: as much of it comes as was asked for.
  const isWhole = isStream ? length <= maximumPayloadBytes : length === payload.length
  if (!isWhole || Buffer.compare(received.payload, payload.subarray(0, length)) !== 0)
    throw new FuzzFinding('a message was taken with another payload than was sent')
}

function openDescriptors(): number {
  return readdirSync('/proc/self/fd').length
}
