// The host socket against clients that are wrong, slow or hostile: each harms itself alone.
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { decode, encode } from '../../../protocol/codec.js'
import {
  KERNEL_RPC_SCHEMA,
  type KernelOperation,
  KernelRequest,
  KernelResponse,
} from '../../../protocol/kernel-rpc.js'
import { makeTestKernel, TENANT, type TestKernel } from '../../support/kernel.js'
import { plainClient, prefixed, readAll } from '../../support/test-listener.js'

let kernel: TestKernel
beforeEach(async () => {
  kernel = await makeTestKernel()
})
afterEach(() => kernel.remove())

function request(operation: KernelOperation, given: Partial<KernelRequest> = {}): Uint8Array {
  return encode(KernelRequest, {
    authorization: null,
    operation,
    requestId: randomBytes(32).toString('hex'),
    schema: KERNEL_RPC_SCHEMA,
    tenantScope: TENANT,
    ...given,
  })
}
const STATUS: KernelOperation = { kind: 'status', request: {} }
const stillServes = async () => expect((await kernel.client.call('status', {})).ownerEpoch).toBe(1)

describe('a client that errs', () => {
  const status = request(STATUS)
  const text = Buffer.from(status).toString('utf8')
  test.each([
    ['random bytes', randomBytes(64)],
    ['an unknown operation', Buffer.from(text.replace('"status"', '"statux"'))],
    ['an unknown member', Buffer.from(text.replace('{"authorization"', '{"aaa":1,"authorization"'))],
    ['a space', Buffer.from(text.replace(':', ': '))],
    [
      'a member twice',
      Buffer.from(text.replace('{"authorization":null', '{"authorization":null,"authorization":null')),
    ],
    ['a lone surrogate', Buffer.from(text.replace(TENANT, '\\ud800'))],
    ['broken UTF-8', Buffer.concat([Buffer.from(text.slice(0, -3)), Buffer.from([0xff]), Buffer.from('"}')])],
  ])('by %s is closed without a byte, and the kernel serves on', async (_what, body) => {
    const client = await plainClient(kernel.config.hostSocketPath)
    client.write(prefixed(body))
    expect(await readAll(client)).toHaveLength(0)
    await stillServes()
    expect(kernel.events).toContainEqual(expect.objectContaining({ event: 'host_connection_closed' }))
  })

  test.each([0, 8 * 1024 * 1024 + 1, 0xffff_ffff])(
    'by a length of %i is closed at its four bytes',
    async length => {
      const client = await plainClient(kernel.config.hostSocketPath)
      const prefix = Buffer.alloc(4)
      prefix.writeUInt32BE(length)
      client.write(prefix)
      expect(await readAll(client)).toHaveLength(0)
      await stillServes()
    },
  )

  test('by leaving inside a frame is forgotten', async () => {
    const client = await plainClient(kernel.config.hostSocketPath)
    client.write(prefixed(status).subarray(0, 40))
    client.destroy()
    await once(client, 'close')
    await stillServes()
  })

  test('by another tenant is told so and may go on', async () => {
    const client = await plainClient(kernel.config.hostSocketPath)
    client.write(prefixed(request(STATUS, { tenantScope: 'another' })))
    client.end(prefixed(request(STATUS)))
    const [first, second] = answersOf(await readAll(client))
    expect(first?.refusal).toMatchObject({ code: 'authorization_denied', outcome: 'not_started' })
    expect(second?.result?.kind).toBe('status')
  })
})

describe('a client that is fine', () => {
  test('may write several requests at once and close its side: they are answered in order', async () => {
    const client = await plainClient(kernel.config.hostSocketPath)
    const ids = ['1', '2', '3'].map(digit => digit.repeat(64))
    client.end(Buffer.concat(ids.map(requestId => prefixed(request(STATUS, { requestId })))))
    expect(answersOf(await readAll(client)).map(({ requestId }) => requestId)).toEqual(ids)
  })
})

function answersOf(bytes: Buffer): KernelResponse[] {
  const answers: KernelResponse[] = []
  for (let at = 0; at < bytes.length; ) {
    const length = bytes.readUInt32BE(at)
    answers.push(decode(KernelResponse, bytes.subarray(at + 4, at + 4 + length), 'answer'))
    at += 4 + length
  }
  return answers
}
