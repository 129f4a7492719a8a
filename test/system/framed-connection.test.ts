import { once } from 'node:events'
import type { Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { systemClock } from '../../native/clock.js'
import { ConnectionEnded } from '../../system/connection-ended.js'
import type { FramedConnection } from '../../system/framed-connection.js'
import { fullCount } from '../support/counts.js'
import { deadlineIn, openDescriptorCount } from '../support/descriptors.js'
import { bytes, clientSends, readOne, serveWith, text, useFramedServer } from '../support/framed-server.js'
import { plainClient, prefixed, readAll } from '../support/test-listener.js'

const server = useFramedServer()
const echo = async (connection: FramedConnection): Promise<void> => {
  await connection.writeFrame(await readOne(connection), deadlineIn(5_000))
}

describe('a frame', () => {
  test('arrives whole, in two pieces, and byte by byte', async () => {
    const outcomes = await serveWith(connection => readOne(connection))
    const frame = prefixed(Buffer.from('hello'))
    await clientSends(frame)
    expect(text(await outcomes.next())).toBe('hello')
    await clientSends(frame.subarray(0, 6), frame.subarray(6))
    expect(text(await outcomes.next())).toBe('hello')
    await clientSends(...[...frame].map(byte => Uint8Array.of(byte)))
    expect(text(await outcomes.next())).toBe('hello')
  })

  test('is accepted at the limit and refused one over, at its fourth byte', async () => {
    const outcomes = await serveWith(connection => readOne(connection, { maximumFrameBytes: 10 }))
    await clientSends(prefixed(bytes(10)))
    expect(text(await outcomes.next())).toBe('xxxxxxxxxx')
    await clientSends(prefixed(bytes(11)).subarray(0, 4))
    expect(await outcomes.next()).toMatchObject({
      ending: 'length',
      code: 'invalid_request',
      receivedBytes: 4,
    })
  })

  test('of length zero is refused', async () => {
    const outcomes = await serveWith(connection => readOne(connection))
    await clientSends(Buffer.alloc(4))
    expect(await outcomes.next()).toMatchObject({ ending: 'length' })
  })

  test.each([9, 11])('of %i bytes is refused where 10 are bound', async length => {
    const outcomes = await serveWith(connection => readOne(connection, { exactBytes: 10 }))
    await clientSends(prefixed(bytes(length)).subarray(0, 4))
    expect(await outcomes.next()).toMatchObject({ ending: 'length' })
  })

  test('that is followed by one byte is refused as a whole', async () => {
    const outcomes = await serveWith(connection => readOne(connection))
    const client = await clientSends(Buffer.concat([prefixed(Buffer.from('hello')), Buffer.from('!')]))
    expect(await outcomes.next()).toMatchObject({ ending: 'surplus', code: 'invalid_request' })
    expect(await readAll(client)).toHaveLength(0)
  })

  test('that is followed later by one byte ends the connection while it is served', async () => {
    const outcomes = await serveWith(async connection => {
      await readOne(connection)
      return connection.ended
    })
    await clientSends(prefixed(Buffer.from('hello')), Buffer.from('!'))
    expect(await outcomes.next()).toBe('surplus')
  })

  test('that ends inside its prefix or its body is truncated, before the first byte it is a peer that left', async () => {
    const outcomes = await serveWith(connection => readOne(connection))
    for (const [sent, code] of [
      [0, 'client_gone'],
      [3, 'truncated_frame'],
      [8, 'truncated_frame'],
    ] as const) {
      const client = await clientSends(prefixed(Buffer.from('hello')).subarray(0, sent))
      client.end()
      expect(await outcomes.next()).toMatchObject({ ending: 'eof', code, receivedBytes: sent })
    }
  })
})

describe('half-close', () => {
  test('after a complete frame still gets the whole response', async () => {
    const response = bytes(3_000_000)
    await serveWith(async connection => {
      await readOne(connection)
      await delay(100)
      await connection.writeFrame(response, deadlineIn(5_000))
    })
    const client = await clientSends(prefixed(Buffer.from('hello')))
    client.end()
    expect(await readAll(client)).toHaveLength(4 + response.length)
  })

  test('that becomes the end of the peer is noticed within 50 ms, although no event tells of it', async () => {
    let endedAt = 0
    const outcomes = await serveWith(async connection => {
      await readOne(connection)
      const ending = await connection.ended
      endedAt = performance.now()
      return ending
    })
    const client = await clientSends(prefixed(Buffer.from('hello')))
    client.end()
    await delay(200)
    expect(endedAt).toBe(0)
    const left = performance.now()
    client.destroy()
    expect(await outcomes.next()).toBe('reset')
    expect(endedAt - left).toBeLessThan(50)
  })

  test('is not a hang-up, a closed peer is', async () => {
    const seen: boolean[] = []
    const outcomes = await serveWith(async connection => {
      await readOne(connection)
      await delay(100)
      seen.push(connection.hungUp())
      await delay(300)
      seen.push(connection.hungUp())
    })
    const client = await clientSends(prefixed(Buffer.from('hello')))
    client.end()
    await delay(200)
    client.destroy()
    await outcomes.next()
    expect(seen).toEqual([false, true])
  })
})

describe('a peer that goes away', () => {
  test('ends a pending read at once', async () => {
    const outcomes = await serveWith(connection =>
      readOne(connection, { deadlineBootNs: deadlineIn(60_000) }),
    )
    const client = await plainClient(server.path)
    await delay(20)
    const begin = performance.now()
    client.destroy()
    expect(await outcomes.next()).toBeInstanceOf(ConnectionEnded)
    expect(performance.now() - begin).toBeLessThan(200)
  })

  test('ends a write as a typed error', async () => {
    const outcomes = await serveWith(async connection => {
      await readOne(connection)
      await delay(50)
      await connection.writeFrame(bytes(8_000_000), deadlineIn(5_000))
    })
    const client = await clientSends(prefixed(Buffer.from('hello')))
    client.destroy()
    expect(await outcomes.next()).toMatchObject({ ending: 'reset', code: 'client_gone' })
  })

  test('lets later reads and writes fail the same way', async () => {
    const outcomes = await serveWith(async connection => {
      connection.closeNow()
      connection.closeNow()
      await expect(connection.writeFrame(bytes(1), deadlineIn(100))).rejects.toMatchObject({
        ending: 'closed',
      })
      await expect(readOne(connection)).rejects.toMatchObject({ ending: 'closed' })
      expect(connection.hungUp()).toBe(true)
      return connection.ended
    })
    await plainClient(server.path)
    expect(await outcomes.next()).toBe('closed')
  })
})

describe('the prepared stream', () => {
  test('gives two exchanges on one connection and sees the first byte of the second', async () => {
    let firstByte = false
    const outcomes = await serveWith(async connection => {
      await readOne(connection)
      await connection.writeFrame(Buffer.from('acknowledged'), deadlineIn(1_000))
      const body = await readOne(connection, {
        exactBytes: 5,
        onFirstByte: () => {
          firstByte = true
          return deadlineIn(1_000)
        },
      })
      await connection.writeFrame(body, deadlineIn(1_000))
    })
    const client = await clientSends(prefixed(Buffer.from('prepare')))
    await once(client, 'readable')
    client.write(prefixed(Buffer.from('12345')))
    await outcomes.next()
    expect(firstByte).toBe(true)
    expect(text(await readAll(client))).toContain('12345')
  })

  test('refuses bytes before its acknowledgement', async () => {
    const outcomes = await serveWith(async connection => {
      await readOne(connection)
      await delay(50)
      await connection.writeFrame(Buffer.from('acknowledged'), deadlineIn(1_000))
    })
    const client = await clientSends(prefixed(Buffer.from('prepare')), prefixed(Buffer.from('early')))
    expect(await outcomes.next()).toMatchObject({ ending: 'surplus' })
    expect(await readAll(client)).toHaveLength(0)
  })
})

describe('stream mode', () => {
  test('takes many frames of one piece in order', async () => {
    const outcomes = await serveWith(
      async connection => {
        const seen: string[] = []
        for (let count = 0; count < 3; count += 1) seen.push(text(await readOne(connection)))
        return seen
      },
      { mode: 'stream' },
    )
    await clientSends(Buffer.concat(['a', 'bb', 'ccc'].map(word => prefixed(Buffer.from(word)))))
    expect(await outcomes.next()).toEqual(['a', 'bb', 'ccc'])
  })

  test('waits without a deadline for the next frame, and has one from its first byte on', async () => {
    const outcomes = await serveWith(
      connection => readOne(connection, { deadlineBootNs: null, onFirstByte: () => deadlineIn(50) }),
      { mode: 'stream' },
    )
    const client = await plainClient(server.path)
    await delay(200)
    client.write(Uint8Array.of(0))
    expect(await outcomes.next()).toMatchObject({ ending: 'deadline' })
  })

  test('does not read without end ahead of a reader that is busy', async () => {
    let readerMayGoOn: () => void = () => {}
    const outcomes = await serveWith(
      async connection => {
        await new Promise<void>(resolve => {
          readerMayGoOn = resolve
        })
        let total = 0
        for (let count = 0; count < 40; count += 1)
          total += (await readOne(connection, { maximumFrameBytes: 100_000 })).length
        return total
      },
      { mode: 'stream' },
    )
    const client = await plainClient(server.path)
    for (let count = 0; count < 40; count += 1) client.write(prefixed(bytes(100_000)))
    await delay(200)
    expect(client.writableLength).toBeGreaterThan(2_000_000)
    readerMayGoOn()
    expect(await outcomes.next()).toBe(4_000_000)
  })
})

describe('abuse', () => {
  const ABUSES: readonly ((client: Socket) => void)[] = [
    client => client.destroy(),
    client => client.write(Buffer.alloc(4, 0xff)),
    client => client.write(Uint8Array.of(0, 0)),
    client => client.end(Uint8Array.of(0, 0, 0)),
    client => client.end(),
    client => client.write(Buffer.concat([prefixed(bytes(3)), bytes(1)])),
    client => client.resetAndDestroy?.() ?? client.destroy(),
  ]

  test('leaves neither descriptors nor connections behind', async () => {
    await serveWith(echo, { clock: systemClock })
    const before = openDescriptorCount()
    for (let round = 0; round < fullCount(200, 1_000); round += 1) {
      const client = await plainClient(server.path)
      try {
        ABUSES[round % ABUSES.length]?.(client)
      } catch {
        client.destroy()
      }
      if (round % 20 === 19) await delay(5)
      client.destroy()
    }
    await expect.poll(() => server.connections).toBe(0)
    await expect.poll(() => openDescriptorCount()).toBeLessThanOrEqual(before + 2)
    const client = await clientSends(prefixed(Buffer.from('hello')))
    expect(text(await readAll(client))).toContain('hello')
  })
})
