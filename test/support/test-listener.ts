// Owns the listeners that system tests make: a private folder, one socket in it, and plain clients without our code.
import { once } from 'node:events'
import { mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '../../native/clock.js'
import { type Listener, listen, type ListenOptions } from '../../system/listener.js'

export interface SocketFolder {
  readonly folder: string
  readonly path: string
  remove(): void
}

export function makeSocketFolder(): SocketFolder {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'chio-sock-')))
  return {
    folder,
    path: join(folder, 'sock'),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  }
}

export type Serving = Pick<ListenOptions, 'onConnection'> & Partial<ListenOptions>

/** Listens on the path for whoever comes, unless the options say otherwise; a fault fails the test that awaits it. */
export function serve(path: string, options: Serving): Promise<Listener> {
  return listen({
    path,
    socketGid: null,
    clock: systemClock,
    mode: 'exchange',
    // Plain clients connect many at once and do not ask again when the queue is full.
    backlog: 128,
    admit: () => true,
    onFault: () => {},
    ...options,
  })
}

/** A client that is paused until it is read, and half-open, as a tool with a plain descriptor is. */
export async function plainClient(path: string): Promise<Socket> {
  const client = connect({ path, allowHalfOpen: true })
  client.on('error', () => {})
  client.pause()
  await once(client, 'connect')
  return client
}

export function prefixed(body: Uint8Array): Buffer {
  const prefix = Buffer.alloc(4)
  prefix.writeUInt32BE(body.length)
  return Buffer.concat([prefix, body])
}

/** Everything up to the end, or up to the reset, of the stream. */
export async function readAll(client: Socket): Promise<Buffer> {
  const chunks: Buffer[] = []
  const over = new Promise<void>(resolve => {
    client.once('end', resolve).once('close', resolve)
  })
  client.on('data', (chunk: Buffer) => chunks.push(chunk)).resume()
  await over
  return Buffer.concat(chunks)
}
