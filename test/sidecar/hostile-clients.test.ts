// Clients that are no clients: huge bodies without a token, bodies one byte over, requests that are none, by the
// thousand. Whatever they send, the sidecar answers or closes, keeps its memory, and serves the next one.
import type { Socket } from 'node:net'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { MAXIMUM_BODY_BYTES, MAXIMUM_HTTP_CONNECTIONS } from '../../sidecar/http-limits.js'
import { FULL_RUN_TIMEOUT_MS, fullCount } from '../support/counts.js'
import { malformedRequest } from '../support/malformed-http.js'
import {
  askRaw,
  connectTo,
  fieldsOf,
  OWN,
  rawRequest,
  readReply,
  type ScriptedKernel,
  scriptedKernel,
  type TestSidecar,
  testSidecar,
} from '../support/sidecar.js'

const GIB = 2 ** 30
const MIB = 2 ** 20

let kernel: ScriptedKernel
let unix: TestSidecar
let loopback: TestSidecar
beforeAll(async () => {
  kernel = scriptedKernel()
  unix = await testSidecar(kernel)
  loopback = await testSidecar(kernel, { host: '127.0.0.1' })
})
afterAll(() => Promise.all([unix.running.close(), loopback.running.close()]))

const opened: Socket[] = []
afterEach(() => {
  for (const socket of opened.splice(0)) socket.destroy()
})

const startText = JSON.stringify(OWN.startBody)
/** A whole and right request, for whether anybody still serves. */
async function isServed({ listen }: TestSidecar): Promise<boolean> {
  const fields = fieldsOf(listen, Buffer.byteLength(startText))
  return (await askRaw(listen, rawRequest('/v1/caller/start', fields, startText))).status === 200
}

describe.each([
  ['a Unix socket', () => unix],
  ['a loopback port', () => loopback],
])('over %s', (_name, sidecarOf) => {
  test('a body of 1 GiB without a token is answered before its first byte', async () => {
    const { listen } = sidecarOf()
    const fields = fieldsOf(listen, GIB, { authorization: null })
    const reply = await askRaw(listen, rawRequest('/v1/caller/start', fields))
    expect([reply.status, reply.body]).toEqual([403, expect.stringContaining('chio_control_forbidden')])
  })

  test('whoever sends it all the same costs no memory, and is cut off', async () => {
    const { listen } = sidecarOf()
    const socket = connectTo(listen)
    opened.push(socket)
    const answered = readReply(socket)
    const before = process.memoryUsage().rss
    socket.write(rawRequest('/v1/caller/report', fieldsOf(listen, GIB, { authorization: null })))
    const sent = await sendUntilClosed(socket, GIB)
    expect((await answered).status).toBe(403)
    expect(sent).toBeLessThan(16 * MIB)
    expect(process.memoryUsage().rss - before).toBeLessThan(64 * MIB)
    expect(await isServed(sidecarOf())).toBe(true)
  })

  test('a body at the bound is read, and one byte over it is refused, announced or not', async () => {
    const { listen } = sidecarOf()
    const padded = (bytes: number): string => startText + ' '.repeat(bytes - Buffer.byteLength(startText))
    const announced = (bytes: number) =>
      askRaw(listen, rawRequest('/v1/caller/start', fieldsOf(listen, bytes), padded(bytes)))
    const chunked = (bytes: number) => {
      const fields = fieldsOf(listen, 0, { 'content-length': null, 'transfer-encoding': 'chunked' })
      const body = `${bytes.toString(16)}\r\n${padded(bytes)}\r\n0\r\n\r\n`
      return askRaw(listen, rawRequest('/v1/caller/start', fields, body))
    }
    for (const ask of [announced, chunked]) {
      expect((await ask(MAXIMUM_BODY_BYTES)).status).toBe(200)
      const { body, status } = await ask(MAXIMUM_BODY_BYTES + 1)
      expect([status, JSON.parse(body)]).toEqual([
        400,
        { error: 'chio_bad_request', message: 'caller delivery request exceeds its bound' },
      ])
    }
  })

  test(
    'malformed requests by the thousand leave it serving',
    async () => {
      const sidecar = sidecarOf()
      const rounds = fullCount(120, 10_000)
      for (let round = 0; round < rounds; round += 20) {
        await Promise.all(
          Array.from({ length: 20 }, (_, at) => answerOrClose(sidecar, malformedRequest(round + at))),
        )
      }
      expect(await isServed(sidecar)).toBe(true)
      expect(sidecar.events.filter(({ level }) => level === 'error')).toEqual([])
    },
    FULL_RUN_TIMEOUT_MS,
  )
})

/** Sends what it can; resolves with how much that was when the other side has had enough. */
function sendUntilClosed(socket: Socket, bytes: number): Promise<number> {
  const part = Buffer.alloc(64 * 1024, 'x')
  let sent = 0
  return new Promise(resolve => {
    socket.once('close', () => resolve(sent))
    const more = (): void => {
      while (sent < bytes && socket.writable) {
        sent += part.length
        if (!socket.write(part)) return
      }
    }
    socket.on('drain', more)
    more()
  })
}

/** Nothing, an answer to HEAD, which has no body, or one of our bodies. */
const OURS = /^$|content-length: \d+(?:\r\n[^\r]+)*\r\n\r\n$|"error":"chio_|"status":"reserved"|"openapi"/i

/** Whatever is answered has a fixed body of ours; a connection may also just end. */
function answerOrClose({ listen }: TestSidecar, bytes: Uint8Array): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connectTo(listen)
    let text = ''
    socket.on('data', chunk => (text += chunk.toString('latin1')))
    socket.on('error', () => {})
    socket.on('close', () => {
      if (OURS.test(text)) resolve()
      else reject(new Error(`answered in other words: ${text.slice(0, 300)}`))
    })
    socket.end(bytes)
  })
}

describe('places', () => {
  test('a connection that sends nothing makes room for one that does', async () => {
    const { listen } = loopback
    const idle = Array.from({ length: MAXIMUM_HTTP_CONNECTIONS }, () => connectTo(listen))
    opened.push(...idle)
    for (const socket of idle) socket.on('error', () => {})
    await Promise.all(idle.map(socket => new Promise(resolve => socket.once('connect', resolve))))
    expect(await isServed(loopback)).toBe(true)
    expect(loopback.events).toContainEqual(
      expect.objectContaining({ event: 'sidecar_connection_refused', reason: 'dropped' }),
    )
  })
})

describe('a client that waits for a word before it sends its body', () => {
  const ask = async (authorization: string | null) => {
    const { listen } = unix
    const socket = connectTo(listen)
    opened.push(socket)
    const fields = fieldsOf(listen, Buffer.byteLength(startText), { authorization, expect: '100-continue' })
    socket.write(
      rawRequest(
        '/v1/caller/start',
        fields.filter(([, value]) => value !== 'none'),
      ),
    )
    const first = await new Promise<string>(resolve => {
      socket.once('data', chunk => resolve(chunk.toString('latin1')))
    })
    return { first, socket }
  }

  test('gets it behind the gate, and none before it', async () => {
    expect((await ask(null)).first).toMatch(/^HTTP\/1.1 403 /)
    const { fields } = { fields: fieldsOf(unix.listen, 0) }
    const bearer = fields.find(([name]) => name === 'authorization')?.[1] ?? null
    const { first, socket } = await ask(bearer)
    expect(first).toMatch(/^HTTP\/1.1 100 Continue/)
    const answered = readReply(socket)
    socket.write(startText)
    expect((await answered).status).toBe(200)
  })
})
