// The bounds of time and places of the HTTP server, at times that a test can wait for: slow clients end, and say nothing.
import type { Server } from 'node:http'
import { connect, type Socket } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { systemClock } from '../../native/clock.js'
import { HTTP_TIMES } from '../../sidecar/http-limits.js'
import { boundedServer, type ServerEvents } from '../../sidecar/http-server.js'
import { readReply, socketPath } from '../support/sidecar.js'

const SHORT = { checkMs: 10, headMs: 50, keepAliveMs: 50, requestMs: 100, silenceMs: 5_000 }

let server: Server
const events: string[] = []
const sockets: Socket[] = []
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy()
  events.length = 0
  await new Promise(resolve => server.close(resolve))
})

async function served(times = SHORT): Promise<string> {
  const told: ServerEvents = {
    onFault: error => events.push(`fault ${String(error)}`),
    onMalformed: refusal => events.push(refusal),
    onTurnedAway: reason => events.push(reason),
  }
  server = boundedServer(
    (request, response) => {
      request.resume()
      request.on('end', () => response.end('whole'))
    },
    systemClock,
    told,
    times,
  )
  const path = socketPath()
  await new Promise<void>(resolve => server.listen(path, resolve))
  return path
}

function open(path: string): Socket {
  const socket = connect(path)
  sockets.push(socket)
  return socket
}
const ended = (socket: Socket): Promise<unknown> =>
  new Promise(resolve => socket.on('error', () => {}).once('close', resolve))

test.each([
  ['no head', ''],
  ['half a head', 'POST / HTTP/1.1\r\nhost: x\r\nx-slow: '],
  ['half a body', 'POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{'],
])('a client that stops at %s is told so, and its place is free', async (_name, bytes) => {
  const socket = open(await served())
  const closed = ended(socket)
  const answered = readReply(socket)
  socket.write(bytes)
  const { body, status } = await answered
  expect([status, JSON.parse(body)]).toMatchObject([408, { error: 'chio_request_timeout' }])
  await closed
  expect(events).toEqual(['timeout'])
})

test('a client that sends a byte now and then buys no time by it', async () => {
  const socket = open(await served())
  const closed = ended(socket)
  socket.write('POST / HTTP/1.1\r\n')
  const trickle = setInterval(() => socket.write('x'), 10)
  await closed
  clearInterval(trickle)
  expect(events).toEqual(['timeout'])
})

test('a connection without a next request ends', async () => {
  const socket = open(await served())
  const closed = ended(socket)
  socket.write('POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n')
  expect((await readReply(socket)).body).toBe('whole')
  await closed
})

test('one process has half of the places, and its own oldest idle connection makes room', async () => {
  const path = await served(HTTP_TIMES)
  const whole = Array.from({ length: 40 }, () => open(path))
  await Promise.all(
    whole.map(
      socket =>
        new Promise(resolve => {
          socket.on('error', () => {}).once('close', resolve)
          socket.once('connect', resolve)
        }),
    ),
  )
  const last = open(path)
  last.write('POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n')
  expect((await readReply(last)).body).toBe('whole')
  expect(new Set(events)).toEqual(new Set(['dropped']))
})
