// Owns one framed listener a test, how its handlers ended, and clients that send raw pieces to it.
import type { Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, beforeEach } from 'vitest'
import type { FramedConnection } from '../../system/framed-connection.js'
import type { Listener } from '../../system/listener.js'
import { deadlineIn } from './descriptors.js'
import { makeSocketFolder, plainClient, serve, type Serving, type SocketFolder } from './test-listener.js'

let place: SocketFolder
let listener: Listener | undefined

/** Gives every test of the file a folder of its own, and closes what it served. */
export function useFramedServer(): { readonly path: string; readonly connections: number | undefined } {
  beforeEach(() => {
    place = makeSocketFolder()
  })
  afterEach(async () => {
    await listener?.close()
    listener = undefined
    place.remove()
  })
  return {
    get path() {
      return place.path
    },
    get connections() {
      return listener?.connections
    },
  }
}

/** Serves with one handler, and tells how each handler ended: its value or its error. */
export async function serveWith(
  handler: (connection: FramedConnection) => Promise<unknown>,
  options: Partial<Serving> = {},
): Promise<{ next(): Promise<unknown> }> {
  const outcomes: unknown[] = []
  const wakers: (() => void)[] = []
  listener = await serve(place.path, {
    ...options,
    onConnection: async connection => {
      outcomes.push(await handler(connection).catch((error: unknown) => error))
      wakers.shift()?.()
    },
  })
  return {
    async next() {
      if (outcomes.length === 0) await new Promise<void>(resolve => wakers.push(resolve))
      return outcomes.shift()
    },
  }
}

export const readOne = (connection: FramedConnection, limits = {}): Promise<Uint8Array> =>
  connection.readFrame({ maximumFrameBytes: 1_000, deadlineBootNs: deadlineIn(5_000), ...limits })
export const text = (body: unknown): string => Buffer.from(body as Uint8Array).toString()
export const bytes = (length: number): Buffer => Buffer.alloc(length, 'x')

export async function clientSends(...pieces: Uint8Array[]): Promise<Socket> {
  const client = await plainClient(place.path)
  for (const piece of pieces) {
    client.write(piece)
    await delay(2)
  }
  return client
}
