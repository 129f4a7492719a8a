// A daemon that takes a request and ends without an answer: what is said of the request then.
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { BrokerClient } from '../../client/broker-client.js'
import { KernelClient } from '../../client/kernel-client.js'
import { systemClock } from '../../native/clock.js'
import { admitPublicKey } from '../../protocol/keys.js'
import { MAXIMUM_RESPONSE_FRAME_BYTES } from '../../protocol/limits.js'
import type { BrokerError } from '../../protocol/errors.js'
import type { Listener } from '../../system/listener.js'
import { signAdminRequest } from '../../protocol/administration.js'
import { signingKey } from '../../protocol/keys.js'
import { SteppedClock } from '../support/clock.js'
import { deadlineIn } from '../support/descriptors.js'
import { makeSocketFolder, serve, type SocketFolder } from '../support/test-listener.js'

const key = signingKey(Buffer.alloc(32, 7))
let place: SocketFolder
let listener: Listener | undefined

beforeEach(() => {
  place = makeSocketFolder()
})
afterEach(async () => {
  await listener?.close()
  listener = undefined
  place.remove()
})

/** Reads one request and ends. */
async function endWithoutAnswer(mode: 'exchange' | 'stream'): Promise<void> {
  listener = await serve(place.path, {
    mode,
    onConnection: async connection => {
      await connection.readFrame({ maximumFrameBytes: 65_536, deadlineBootNs: deadlineIn(5_000) })
    },
  })
}

/** Reads one request, answers with these bytes and ends. */
async function answerWith(body: Uint8Array): Promise<void> {
  listener = await serve(place.path, {
    mode: 'exchange',
    onConnection: async connection => {
      await connection.readFrame({ maximumFrameBytes: 65_536, deadlineBootNs: deadlineIn(5_000) })
      await connection.writeFrame(body, deadlineIn(5_000))
    },
  })
}

/** Reads requests and says nothing to them. @returns the moment when the first has come. */
async function staySilent(): Promise<{ readonly asked: Promise<void> }> {
  let askedNow = (): void => undefined
  const asked = new Promise<void>(resolve => (askedNow = resolve))
  listener = await serve(place.path, {
    mode: 'stream',
    onConnection: async connection => {
      for (;;) {
        await connection.readFrame({ maximumFrameBytes: 65_536, deadlineBootNs: null })
        askedNow()
      }
    },
  })
  return { asked }
}

function pins() {
  return {
    socketPath: place.path,
    uid: process.geteuid?.() ?? 0,
    socketGid: null,
    receiptKey: admitPublicKey(key.publicKey, 'receipt key'),
    kernelKey: admitPublicKey(key.publicKey, 'kernel key'),
    tenantScope: 'tenant',
    requestFrameBytes: 65_536,
    responseFrameBytes: MAXIMUM_RESPONSE_FRAME_BYTES,
  }
}

function authorization() {
  const request = { operation: 'revoke', payload: new Uint8Array(1), tenantScope: 'tenant' }
  const statement = { subject: 'a', requestId: 'r', issuedAtUnixSeconds: 1, lifetimeSeconds: 60 }
  return signAdminRequest(request, statement, key)
}

async function refusalOf(asked: Promise<unknown>): Promise<{ code: string; outcome: string }> {
  const error = await asked.then(
    () => expect.unreachable('it was answered'),
    (refusal: unknown) => refusal as BrokerError,
  )
  return { code: error.code, outcome: error.outcome }
}

describe('a broker that ends without an answer', () => {
  test.each(['provision', 'revoke'] as const)('leaves %s unknown: it may have been done', async operation => {
    await endWithoutAnswer('exchange')
    const client = new BrokerClient(pins(), systemClock)
    const request = { operation, payload: new Uint8Array(1), tenantScope: 'tenant' }
    expect(await refusalOf(client.administer(request, authorization()))).toEqual({
      code: 'broker_unavailable',
      outcome: 'unknown',
    })
  })

  test('is unavailable to who asks for its status, and nothing was started', async () => {
    await endWithoutAnswer('exchange')
    expect(await refusalOf(new BrokerClient(pins(), systemClock).slotStatus())).toEqual({
      code: 'broker_unavailable',
      outcome: 'not_started',
    })
  })
})

describe('an answer that is none of a broker', () => {
  const NULL = Buffer.from('null')

  test.each(['provision', 'disable', 'revoke'] as const)(
    'leaves %s unknown, and blames nothing in the request',
    async operation => {
      await answerWith(NULL)
      const client = new BrokerClient(pins(), systemClock)
      const request = { operation, payload: new Uint8Array(1), tenantScope: 'tenant' }
      expect(await refusalOf(client.administer(request, authorization()))).toEqual({
        code: 'broker_unavailable',
        outcome: 'unknown',
      })
    },
  )

  test('tells who asks for the slot that nothing was started', async () => {
    await answerWith(NULL)
    expect(await refusalOf(new BrokerClient(pins(), systemClock).slotStatus())).toEqual({
      code: 'broker_unavailable',
      outcome: 'not_started',
    })
  })
})

describe('a kernel', () => {
  const revoke = (client: KernelClient) => client.call('revoke_grant', { grantId: 'g' }, authorization())

  test('that ends without an answer leaves a revocation unknown, and a list not started', async () => {
    await endWithoutAnswer('stream')
    const client = new KernelClient(pins(), systemClock)
    expect(await refusalOf(revoke(client))).toEqual({ code: 'kernel_unavailable', outcome: 'unknown' })
    expect(await refusalOf(client.call('list', { limit: 1 }))).toEqual({
      code: 'kernel_unavailable',
      outcome: 'not_started',
    })
    client.close()
  })

  test('that says nothing in time leaves a revocation unknown, and is not told to be gone', async () => {
    const { asked } = await staySilent()
    const clock = new SteppedClock()
    const client = new KernelClient(pins(), clock)
    const told = revoke(client).catch((error: unknown) => error)
    await asked
    clock.runOn(11_000)
    expect(await told).toMatchObject({
      code: 'kernel_unavailable',
      outcome: 'unknown',
      message: expect.stringContaining('nothing came within 10 s') as string,
    })
    client.close()
  })

  test('that is not there did not revoke anything', async () => {
    const client = new KernelClient(pins(), systemClock)
    expect(await refusalOf(revoke(client))).toEqual({ code: 'kernel_unavailable', outcome: 'not_started' })
    client.close()
  })
})
