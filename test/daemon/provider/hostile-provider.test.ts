// A provider that does whatever it likes, through whole executions of a real broker: one hit at most, and one outcome
// in the signed record, which is what happened.
import { createServer, type Server, type Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type BrokerWorld, SECRET, startWorld } from '../../support/broker-world.js'
import { testAuthority } from '../../support/certificates.js'
import { HOSTILE_ROWS, reflections } from '../../support/hostile-answers.js'
import { endingOf } from '../../support/hostile-execution.js'
import { answer, startProvider, type TestProvider } from '../../support/provider.js'

let world: BrokerWorld
let provider: TestProvider
let raw: Server
let onConnection: (socket: TLSSocket) => void = () => undefined
let onRaw: (socket: Socket) => void = socket => void socket.destroy()
const rawSockets = new Set<Socket>()

beforeAll(async () => {
  provider = await startProvider({ onConnection: socket => onConnection(socket) })
  raw = createServer(socket => {
    rawSockets.add(socket)
    socket.on('error', () => undefined)
    onRaw(socket)
  })
  raw.listen(0, '127.0.0.1')
  await once(raw, 'listening')
  world = await startWorld({ config: { localProviders: [provider.localProvider(), rawProvider()] } })
})
afterAll(async () => {
  await world.close()
  await provider.close()
  for (const socket of rawSockets) socket.destroy()
  raw.close()
})

const rawPort = (): number => (raw.address() as AddressInfo).port
const rawProvider = () => ({
  host: 'raw.test',
  port: rawPort(),
  address: '127.0.0.1',
  caPem: testAuthority().certPem,
})

/** A path of its own for each execution: what one row does to a path is no matter of the next. */
let rows = 0
const path = (): string => `/row/${rows++}`

describe('a provider that', () => {
  test.each([...HOSTILE_ROWS, ...reflections(SECRET)].map(row => [row.name, row] as const))(
    '%s',
    async (_name, { attempt: options, behaviour, endings }) => {
      provider.behave(behaviour)
      const before = provider.hits
      const attempt = await world.prepared({ ...options, url: provider.url(path()) })
      const { ending } = await endingOf(world, attempt)
      expect(endings).toContain(ending)
      expect(provider.hits - before, 'hits').toBe(1)
    },
  )
})

describe('before the request is written, a provider that', () => {
  const early: readonly (readonly [string, (socket: TLSSocket) => void])[] = [
    ['answers early', socket => answer(socket, 'early')],
    ['ends early', socket => void socket.end()],
    ['closes early', socket => void socket.destroy()],
  ]
  test.each(early)(
    '%s on every connection is never said to have got nothing when it got the request',
    async (_n, act) => {
      onConnection = act
      const before = provider.hits
      const attempt = await world.prepared({ url: provider.url(path()) })
      await untilClosed(provider)
      const { ending } = await endingOf(world, attempt)
      onConnection = () => undefined
      // The replacement is looked at once: what was on its way then is met after the write, as the answer or the end.
      const truths: Record<string, readonly number[]> = {
        provider_unreachable: [0],
        provider_lost: [0, 1],
        response: [1],
      }
      expect(truths[ending]).toContain(provider.hits - before)
    },
  )

  test.each(early)('%s on the first connection is asked once on another', async (_n, act) => {
    onConnection = socket => {
      onConnection = () => undefined
      act(socket)
    }
    provider.behave(({ socket }) => answer(socket, 'ok'))
    const before = provider.hits
    const attempt = await world.prepared({ url: provider.url(path()) })
    await untilClosed(provider)
    expect((await endingOf(world, attempt)).ending).toBe('response')
    expect(provider.hits - before).toBe(1)
  })

  test.each<[string, (socket: Socket) => void, string]>([
    ['resets the connection', socket => void socket.resetAndDestroy(), 'provider_unreachable'],
    ['closes the connection', socket => void socket.end(), 'provider_unreachable'],
    [
      'resets inside the TLS handshake',
      socket => void socket.once('data', () => socket.resetAndDestroy()),
      'provider_unreachable',
    ],
    [
      'ends inside the TLS handshake',
      socket => void socket.once('data', () => socket.end()),
      'provider_unreachable',
    ],
    ['speaks no TLS', socket => void socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'), 'provider_unverified'],
    [
      'sends a TLS alert',
      socket => void socket.end(Buffer.from('15030300020228', 'hex')),
      'provider_unverified',
    ],
  ])('%s gets no request, and is said to be what it is', async (_name, act, reason) => {
    onRaw = act
    const attempt = await world.prepared({ url: `https://raw.test:${rawPort()}${path()}` })
    expect((await endingOf(world, attempt)).ending).toBe(reason)
  })
})

/** Until the broker has given up the connection that it had opened ahead. */
async function untilClosed({ sockets }: TestProvider): Promise<void> {
  while (sockets.at(-1) === undefined) await new Promise(setImmediate)
  const socket = sockets.at(-1) as TLSSocket
  if (!socket.closed) await once(socket, 'close')
}
