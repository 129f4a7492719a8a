import { spawnSync } from 'node:child_process'
import { chmodSync, chownSync, rmSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { systemClock } from '../../native/clock.js'
import { closeDescriptor } from '../../native/index.js'
import { connectFramed, connectPinned, exchangeFrame } from '../../system/connect.js'
import type { FramedConnection } from '../../system/framed-connection.js'
import type { Listener } from '../../system/listener.js'
import { RpcConnection } from '../../system/rpc-connection.js'
import { deadlineIn, descriptorFlags, NONBLOCK, openDescriptorCount } from '../support/descriptors.js'
import { SKIP_REASONS } from '../support/skips.js'
import { makeSocketFolder, plainClient, serve, type SocketFolder } from '../support/test-listener.js'
import { testWhen } from '../support/when.js'

const isRoot = process.geteuid?.() === 0
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

const pins = () => ({
  path: place.path,
  ownerUid: process.geteuid?.() ?? 0,
  socketGid: null,
  clock: systemClock,
})
const options = () => ({ ...pins(), deadlineBootNs: deadlineIn(2_000) })
const read = (connection: FramedConnection): Promise<Uint8Array> =>
  connection.readFrame({ maximumFrameBytes: 10_000_000, deadlineBootNs: null })
const text = (body: Uint8Array): string => Buffer.from(body).toString()
const untilEnd = async (connection: FramedConnection): Promise<void> => void (await connection.ended)

describe('an exchange', () => {
  test('carries one request and its response', async () => {
    listener = await serve(place.path, {
      onConnection: async connection => connection.writeFrame(await read(connection), deadlineIn(1_000)),
    })
    const body = Buffer.alloc(4_000_000, 'y')
    const answer = await exchangeFrame({ ...options(), maximumFrameBytes: 8_000_000 }, body)
    expect(Buffer.compare(answer, body)).toBe(0)
  })

  test('ends at its deadline when the daemon never answers', async () => {
    listener = await serve(place.path, { onConnection: untilEnd })
    const asked = exchangeFrame(
      { ...pins(), deadlineBootNs: deadlineIn(100), maximumFrameBytes: 10 },
      Buffer.from('x'),
    )
    await expect(asked).rejects.toMatchObject({ code: 'deadline_expired' })
  })

  test('tells a daemon that leaves without an answer from one that leaves inside it', async () => {
    const answers: Uint8Array[] = []
    listener = await serve(place.path, {
      mode: 'stream',
      onConnection: async connection => {
        await read(connection)
        const answer = answers.pop()
        if (answer !== undefined) await connection.writeFrame(answer, deadlineIn(1_000)).catch(() => {})
      },
    })
    const ask = () => exchangeFrame({ ...options(), maximumFrameBytes: 100 }, Buffer.from('x'))
    await expect(ask()).rejects.toMatchObject({ code: 'client_gone', receivedBytes: 0 })
    answers.push(Buffer.alloc(101))
    await expect(ask()).rejects.toMatchObject({ code: 'invalid_request', ending: 'length' })
  })
})

describe('connecting', () => {
  test.each([
    ['authority_unavailable', {}],
    ['broker_unavailable', { unavailable: 'broker_unavailable' as const }],
  ])('names nobody there as %s', async (code, extra) => {
    await expect(connectFramed({ ...options(), ...extra })).rejects.toMatchObject({
      code,
      outcome: 'not_started',
    })
    listener = await serve(place.path, { onConnection: untilEnd })
    await listener.close()
    await expect(connectFramed({ ...options(), ...extra })).rejects.toMatchObject({ code })
  })

  test('refuses a socket that is not in custody before it connects', async () => {
    let accepted = 0
    listener = await serve(place.path, {
      onConnection: async () => {
        accepted += 1
      },
    })
    chmodSync(place.path, 0o666)
    await expect(connectFramed(options())).rejects.toMatchObject({ code: 'custody' })
    await delay(20)
    expect(accepted).toBe(0)
  })

  testWhen(
    isRoot,
    SKIP_REASONS.needsRoot,
    'refuses a listener of another uid behind a socket in custody',
    async () => {
      listener = await serve(place.path, { onConnection: untilEnd })
      chownSync(place.path, 61_195, 61_195)
      chownSync(place.folder, 61_195, 61_195)
      await expect(connectFramed({ ...options(), ownerUid: 61_195 })).rejects.toMatchObject({
        code: 'peer_mismatch',
      })
    },
  )

  testWhen(isRoot, SKIP_REASONS.needsRoot, 'refuses a listener of another group', async () => {
    listener = await serve(place.path, { onConnection: untilEnd })
    chownSync(place.folder, 0, 61_195)
    chmodSync(place.folder, 0o710)
    chownSync(place.path, 0, 61_195)
    chmodSync(place.path, 0o660)
    await expect(connectFramed({ ...options(), socketGid: 61_195 })).rejects.toMatchObject({
      code: 'peer_mismatch',
    })
  })

  test('gives a blocking descriptor for the stream that a tool will hold, and none after a refusal', async () => {
    listener = await serve(place.path, {
      onConnection: async connection => void (await read(connection).catch(() => {})),
    })
    const before = openDescriptorCount()
    const fd = await connectPinned(options())
    expect(descriptorFlags(fd) & NONBLOCK).toBe(0)
    closeDescriptor(fd)
    chmodSync(place.folder, 0o755)
    await expect(connectPinned(options())).rejects.toMatchObject({ code: 'custody' })
    chmodSync(place.folder, 0o700)
    await expect.poll(() => openDescriptorCount()).toBeLessThanOrEqual(before)
  })

  testWhen(
    isRoot,
    SKIP_REASONS.needsRoot,
    'is refused to a user outside the group by the file system',
    async () => {
      listener = await serve(place.path, { onConnection: untilEnd })
      const program =
        'import socket,sys\ntry:\n socket.socket(socket.AF_UNIX).connect(sys.argv[1])\nexcept PermissionError: print("denied")'
      const ended = spawnSync('setpriv', [
        '--reuid',
        '61196',
        '--regid',
        '61196',
        '--clear-groups',
        '--',
        '/usr/bin/python3',
        '-c',
        program,
        place.path,
      ])
      expect(ended.stdout.toString().trim()).toBe('denied')
    },
  )
})

describe('a persistent connection', () => {
  const idOf = (body: Uint8Array): string => text(body).split(':')[0] ?? ''
  const rpc = (): RpcConnection => new RpcConnection({ ...pins(), maximumFrameBytes: 1_000, keyOf: idOf })
  const ask = (connection: RpcConnection, id: string, milliseconds = 2_000): Promise<string> =>
    connection.request(id, Buffer.from(`${id}:question`), deadlineIn(milliseconds)).then(text)

  /** Answers in the order that the function gives back for the questions so far. */
  async function answering(
    answer: (connection: FramedConnection, id: string) => Promise<void>,
  ): Promise<{ connections: number }> {
    const count = { connections: 0 }
    listener = await serve(place.path, {
      mode: 'stream',
      onConnection: async connection => {
        count.connections += 1
        for (;;) {
          const body = await read(connection).catch(() => undefined)
          if (body === undefined) return
          void answer(connection, idOf(body)).catch(() => {})
        }
      },
    })
    return count
  }
  const say = (connection: FramedConnection, id: string): Promise<void> =>
    connection.writeFrame(Buffer.from(`${id}:answer`), deadlineIn(1_000))

  test('matches answers that come in another order, over one connection', async () => {
    const waits: Record<string, number> = { a: 60, b: 30, c: 0 }
    const count = await answering(async (connection, id) => {
      await delay(waits[id] ?? 0)
      await say(connection, id)
    })
    const asking = rpc()
    expect(await Promise.all(['a', 'b', 'c'].map(id => ask(asking, id)))).toEqual([
      'a:answer',
      'b:answer',
      'c:answer',
    ])
    expect(count.connections).toBe(1)
    asking.close()
  })

  test('refuses one at its deadline and serves the others, dropping the late answer', async () => {
    await answering(async (connection, id) => {
      await delay(id === 'late' ? 150 : 0)
      await say(connection, id)
    })
    const asking = rpc()
    await expect(ask(asking, 'late', 50)).rejects.toMatchObject({
      code: 'deadline_expired',
      outcome: 'unknown',
    })
    await delay(150)
    expect(await ask(asking, 'next')).toBe('next:answer')
    asking.close()
  })

  test('refuses everybody when it is lost, and connects anew for the next', async () => {
    const count = await answering(async (connection, id) => {
      if (id === 'kill') connection.closeNow()
      else if (id !== 'silent') await say(connection, id)
    })
    const asking = rpc()
    const lost = await Promise.allSettled([ask(asking, 'silent'), ask(asking, 'kill')])
    expect(lost.map(each => each.status === 'rejected' && (each.reason as { code: string }).code)).toEqual([
      'authority_unavailable',
      'authority_unavailable',
    ])
    expect(await ask(asking, 'next')).toBe('next:answer')
    expect(count.connections).toBe(2)
    asking.close()
  })

  test('notices that the daemon was restarted while nobody asked', async () => {
    await answering(say)
    const asking = rpc()
    await ask(asking, 'a')
    await listener?.close()
    await expect(ask(asking, 'b')).rejects.toMatchObject({ code: 'authority_unavailable' })
    await answering(say)
    expect(await ask(asking, 'c')).toBe('c:answer')
    asking.close()
  })

  test('ends over an answer that nobody asked for, and over one without an id', async () => {
    await answering(async connection => connection.writeFrame(Buffer.from('other:answer'), deadlineIn(1_000)))
    const asking = rpc()
    await expect(ask(asking, 'a')).rejects.toMatchObject({ code: 'authority_unavailable' })
    const strict = new RpcConnection({
      ...pins(),
      maximumFrameBytes: 1_000,
      keyOf: () => {
        throw new Error('no id')
      },
    })
    await expect(ask(strict, 'a')).rejects.toMatchObject({ code: 'authority_unavailable' })
    asking.close()
    strict.close()
  })

  test('is refused after its end, and leaves no descriptor', async () => {
    await answering(say)
    const before = openDescriptorCount()
    const asking = rpc()
    await ask(asking, 'a')
    asking.close()
    await expect(ask(asking, 'b')).rejects.toMatchObject({ code: 'authority_unavailable' })
    await expect.poll(() => openDescriptorCount()).toBeLessThanOrEqual(before)
  })

  test('fails everybody alike when it cannot be had', async () => {
    rmSync(place.path, { force: true })
    const asking = rpc()
    const refused = await Promise.allSettled([ask(asking, 'a'), ask(asking, 'b')])
    expect(refused.every(each => each.status === 'rejected')).toBe(true)
    listener = await serve(place.path, { onConnection: untilEnd })
    await plainClient(place.path)
  })
})
