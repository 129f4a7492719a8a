// The call itself, inside the cage: the exact frame goes out on descriptor 8, once, and the one response is verified
// against the original request and the pinned receipt key before anybody is told. Plain blocking reads and writes: the
// stream is taken as it is, with its deadline, and never duplicated. Opens no connection.
// Source: read(2), write(2), fstat(2); the failures of chio-broker-mcp.
import { fstatSync, readSync, writeSync } from 'node:fs'
import { executeFrameBody } from '../protocol/attempt-request.js'
import { decode } from '../protocol/codec.js'
import { decodeResponse } from '../protocol/envelope.js'
import { BrokerError } from '../protocol/errors.js'
import type { BrokerExecuteRequest } from '../protocol/execute-request.js'
import { BrokerExecuteResponse, verifyFailureTo, verifyResponseTo } from '../protocol/execute-response.js'
import { BrokerExecuteFailure } from '../protocol/failure.js'
import { encodeFrame } from '../protocol/frame.js'
import type { PublicKey } from '../protocol/keys.js'
import { FRAME_PREFIX_BYTES, MAXIMUM_RESPONSE_FRAME_BYTES } from '../protocol/limits.js'

export interface StreamPins {
  readonly descriptor: number
  readonly tenantScope: string
  readonly receiptSigner: PublicKey
}

/** @throws BrokerError `custody` when the descriptor is no socket. */
export function assertSocket(descriptor: number): void {
  let isSocket = false
  try {
    isSocket = fstatSync(descriptor).isSocket()
  } catch {
    // A closed descriptor is no socket either.
  }
  if (!isSocket) {
    throw new BrokerError('custody', `descriptor ${descriptor} refused: expected a socket, got none`)
  }
}

/**
 * Submits a request once.
 * @returns the canonical bytes of the verified response document.
 * @throws BrokerError `authorization_denied` for a signed failure; `outcome_undetermined` when nothing whole came.
 */
export function callBroker(request: BrokerExecuteRequest, pins: StreamPins): Uint8Array {
  writeAll(pins.descriptor, encodeFrame(executeFrameBody(request, pins.tenantScope)))
  const { accepted, response } = decodeResponse(readFrame(pins.descriptor), 'execute')
  if (accepted) {
    verifyResponseTo(decode(BrokerExecuteResponse, response, 'response'), request, pins.receiptSigner)
    return response
  }
  verifyFailureTo(decode(BrokerExecuteFailure, response, 'failure'), request, pins.receiptSigner)
  throw new BrokerError('authorization_denied', 'call refused: the broker signed a failure')
}

/** A broker that has closed already may have left a response: it is read all the same. */
function writeAll(descriptor: number, bytes: Uint8Array): void {
  try {
    for (let done = 0; done < bytes.length; ) done += writeSync(descriptor, bytes, done)
  } catch (error) {
    if (!isClosed(error)) throw error
  }
}

function readFrame(descriptor: number): Uint8Array {
  const prefix = readExactly(descriptor, FRAME_PREFIX_BYTES)
  const length = Buffer.from(prefix).readUInt32BE()
  if (length > MAXIMUM_RESPONSE_FRAME_BYTES) {
    throw new BrokerError('invalid_request', 'response refused: expected a frame within its bound, got more')
  }
  return readExactly(descriptor, length)
}

function readExactly(descriptor: number, bytes: number): Uint8Array {
  const whole = Buffer.alloc(bytes)
  for (let done = 0; done < bytes; ) {
    const count = readSome(descriptor, whole.subarray(done))
    if (count === 0) throw undetermined()
    done += count
  }
  return whole
}

function readSome(descriptor: number, into: Uint8Array): number {
  try {
    return readSync(descriptor, into)
  } catch (error) {
    if (isClosed(error)) return 0
    throw error
  }
}

function isClosed(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException
  return code === 'EPIPE' || code === 'ECONNRESET'
}

function undetermined(): BrokerError {
  return new BrokerError(
    'outcome_undetermined',
    'call ended without a whole response; only the recorded outcome can tell',
  )
}
