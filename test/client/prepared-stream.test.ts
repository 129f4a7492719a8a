// A prepared stream is used once: the second use throws before anything touches a descriptor, and an end without a
// response never looks like an outcome.
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { PreparedStream } from '../../client/prepared-stream.js'
import {
  closeDescriptor,
  duplicateDescriptor,
  readFrame,
  readToEnd,
  shutdownWrite,
  socketPair,
  writeFully,
} from '../../native/index.js'
import { encode } from '../../protocol/codec.js'
import { IpcResponse } from '../../protocol/envelope.js'
import { isBrokerError } from '../../protocol/errors.js'
import { encodeFrame } from '../../protocol/frame.js'
import { codeOf, deadlineIn, openDescriptorCount } from '../support/descriptors.js'

const REQUEST = encodeFrame(Buffer.from('{"exact":true}'))
const ANSWER = encode(IpcResponse, {
  accepted: false,
  errorCode: 'attempt_pending',
  operation: 'execute',
  response: new Uint8Array(0),
})
const LIMITS = { maximumFrameBytes: 4_096 }

let peer: number
let stream: PreparedStream
let streamDescriptor: number
let open: number

beforeEach(() => {
  open = openDescriptorCount()
  ;[streamDescriptor, peer] = socketPair('stream')
  stream = new PreparedStream(streamDescriptor, REQUEST, LIMITS.maximumFrameBytes)
})
afterEach(() => {
  stream.close()
  closeDescriptor(peer)
  expect(openDescriptorCount()).toBe(open)
})

/** Answers with raw bytes after the request arrived, and ends its side. */
async function answerRaw(bytes: Uint8Array): Promise<Uint8Array | null> {
  const request = await readFrame(peer, { ...LIMITS, deadlineBootNs: deadlineIn(5_000) })
  await writeFully(peer, bytes, deadlineIn(5_000))
  shutdownWrite(peer)
  return request
}

const uses: [string, (used: PreparedStream) => unknown][] = [
  ['submit', used => used.submit(deadlineIn(1_000))],
  ['take', used => used.takeDescriptor()],
]

describe('a prepared stream', () => {
  test('is known to be ended once its broker closed it, and no longer judged once given away', () => {
    expect(stream.isEndedByBroker()).toBe(false)
    shutdownWrite(streamDescriptor)
    expect(stream.isEndedByBroker()).toBe(false)
    closeDescriptor(peer)
    expect(stream.isEndedByBroker()).toBe(true)
    closeDescriptor(stream.takeDescriptor())
    expect(stream.isEndedByBroker()).toBe(false)
    ;[streamDescriptor, peer] = socketPair('stream')
    closeDescriptor(streamDescriptor)
  })

  test('submits its exact frame once and gives back the one response', async () => {
    const [{ response, frame }, request] = await Promise.all([
      stream.submit(deadlineIn(5_000)),
      answerRaw(encodeFrame(ANSWER)),
    ])
    expect(Buffer.from(request ?? []).toString()).toBe('{"exact":true}')
    expect(response.errorCode).toBe('attempt_pending')
    expect(Buffer.compare(frame, ANSWER)).toBe(0)
  })

  test.each(uses)('refuses %s after a submit, and touches no descriptor', async (_name, again) => {
    await Promise.all([stream.submit(deadlineIn(5_000)), answerRaw(encodeFrame(ANSWER))])
    await refusesUntouched(again)
  })

  test.each(uses)('refuses %s after a submit that is still running', async (_name, again) => {
    const running = stream.submit(deadlineIn(5_000))
    expect(await codeOf(() => again(stream))).toBe('prepared_stream_consumed')
    await Promise.all([running, answerRaw(encodeFrame(ANSWER))])
  })

  test.each(uses)('refuses %s after a handoff, and touches no descriptor', async (_name, again) => {
    closeDescriptor(stream.takeDescriptor())
    await refusesUntouched(again)
  })

  test.each(uses)('refuses %s after it was closed, and touches no descriptor', async (_name, again) => {
    stream.close()
    await refusesUntouched(again)
  })

  test('can be closed again and again, and closes nothing that it gave away', () => {
    const given = stream.takeDescriptor()
    stream.close()
    stream.close()
    expect(() => closeDescriptor(given)).not.toThrow()
  })

  test('ends as undetermined when the broker ends it without a response', async () => {
    const [error] = await Promise.all([refusalOf(stream), answerRaw(new Uint8Array(0))])
    expect(error).toMatchObject({ code: 'outcome_undetermined', outcome: 'unknown' })
  })

  test('ends as undetermined when the response is torn, however it is torn', async () => {
    const whole = encodeFrame(ANSWER)
    for (const length of [1, 3, 4, 5, whole.length - 1]) {
      const [descriptor, other] = socketPair('stream')
      const torn = new PreparedStream(descriptor, REQUEST, LIMITS.maximumFrameBytes)
      const refusal = refusalOf(torn)
      await readFrame(other, { ...LIMITS, deadlineBootNs: deadlineIn(5_000) })
      await writeFully(other, whole.subarray(0, length), deadlineIn(5_000))
      closeDescriptor(other)
      expect(await refusal).toMatchObject({ code: 'outcome_undetermined', outcome: 'unknown' })
    }
  })

  test('ends as undetermined when the peer is gone before the request is written', async () => {
    const [descriptor, other] = socketPair('stream')
    const orphan = new PreparedStream(descriptor, REQUEST, LIMITS.maximumFrameBytes)
    closeDescriptor(other)
    expect(await refusalOf(orphan)).toMatchObject({ code: 'outcome_undetermined', outcome: 'unknown' })
  })

  test('ends as undetermined when the time for the response is over', async () => {
    expect(await refusalOf(stream, 50)).toMatchObject({ code: 'outcome_undetermined', outcome: 'unknown' })
  })

  test('knows no outcome from a complete answer that is no answer to this request', async () => {
    const other = encode(IpcResponse, {
      accepted: true,
      errorCode: null,
      operation: 'slot_status',
      response: Buffer.from('{}'),
    })
    const [error] = await Promise.all([refusalOf(stream), answerRaw(encodeFrame(other))])
    expect(error).toMatchObject({ code: 'outcome_undetermined', outcome: 'unknown' })
  })
})

/** The number that the stream had now names another socket: a use that reached the kernel would leave bytes in it. */
async function refusesUntouched(again: (used: PreparedStream) => unknown): Promise<void> {
  const pair = socketPair('stream')
  const [taker, watcher] = pair[1] === streamDescriptor ? [pair[1], pair[0]] : pair
  const inItsPlace = taker === streamDescriptor ? taker : duplicateDescriptor(taker, streamDescriptor)
  expect(inItsPlace).toBe(streamDescriptor)
  expect(await codeOf(() => again(stream))).toBe('prepared_stream_consumed')
  for (const descriptor of new Set([taker, inItsPlace])) closeDescriptor(descriptor)
  expect(await readToEnd(watcher, 4_096, deadlineIn(1_000))).toHaveLength(0)
  closeDescriptor(watcher)
}

async function refusalOf(used: PreparedStream, budgetMs = 5_000): Promise<unknown> {
  const error = await used.submit(deadlineIn(budgetMs)).then(
    () => undefined,
    (cause: unknown) => cause,
  )
  expect(isBrokerError(error)).toBe(true)
  return error
}
