import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { HeldClock } from '../support/clock.js'
import { startChild } from '../support/compiled-child.js'
import { deadlineIn } from '../support/descriptors.js'
import { bytes, clientSends, readOne, serveWith, useFramedServer } from '../support/framed-server.js'
import { plainClient, prefixed, readAll } from '../support/test-listener.js'
import { standStill } from '../support/stop.js'

const server = useFramedServer()

describe('deadlines', () => {
  test('end an idle connection, not before and soon after', async () => {
    const outcomes = await serveWith(connection => readOne(connection, { deadlineBootNs: deadlineIn(100) }))
    const begin = performance.now()
    const client = await plainClient(server.path)
    expect(await outcomes.next()).toMatchObject({ ending: 'deadline', code: 'deadline_expired' })
    expect(performance.now() - begin).toBeGreaterThanOrEqual(99)
    expect(performance.now() - begin).toBeLessThan(1_000)
    expect(await readAll(client)).toHaveLength(0)
  })

  test('are not moved by bytes that trickle', async () => {
    const outcomes = await serveWith(connection => readOne(connection, { deadlineBootNs: deadlineIn(200) }))
    const begin = performance.now()
    const client = await plainClient(server.path)
    client.write(prefixed(bytes(900)).subarray(0, 4))
    const trickle = setInterval(() => client.write('x'), 10)
    expect(await outcomes.next()).toMatchObject({ ending: 'deadline' })
    clearInterval(trickle)
    expect(performance.now() - begin).toBeLessThan(1_000)
  })

  test('are compared when bytes arrive, whatever the timers say', async () => {
    const clock = new HeldClock()
    const outcomes = await serveWith(
      connection => readOne(connection, { deadlineBootNs: clock.bootNs() + 60_000_000_000n }),
      { clock },
    )
    const frame = prefixed(Buffer.from('hello'))
    const client = await clientSends(frame.subarray(0, 5))
    clock.pass(60_000)
    client.write(frame.subarray(5))
    expect(await outcomes.next()).toMatchObject({ ending: 'deadline', receivedBytes: 5 })
  })

  test('that have passed already end the connection without reading', async () => {
    const outcomes = await serveWith(connection => readOne(connection, { deadlineBootNs: deadlineIn(-1) }))
    await clientSends(prefixed(Buffer.from('hello')))
    expect(await outcomes.next()).toMatchObject({ ending: 'deadline' })
  })

  test('shorten with the first byte, and never lengthen', async () => {
    let shorter = true
    const outcomes = await serveWith(connection =>
      readOne(connection, {
        deadlineBootNs: deadlineIn(400),
        onFirstByte: () => deadlineIn(shorter ? 50 : 60_000),
      }),
    )
    const begin = performance.now()
    await clientSends(Uint8Array.of(0))
    expect(await outcomes.next()).toMatchObject({ ending: 'deadline' })
    expect(performance.now() - begin).toBeLessThan(390)
    shorter = false
    await clientSends(Uint8Array.of(0))
    expect(await outcomes.next()).toMatchObject({ ending: 'deadline' })
  })

  test('end a fault of the first-byte callback with the connection, not the process', async () => {
    const outcomes = await serveWith(connection =>
      readOne(connection, {
        onFirstByte: () => {
          throw new Error('fault')
        },
      }),
    )
    await clientSends(Uint8Array.of(0))
    expect(await outcomes.next()).toMatchObject({ ending: 'closed' })
  })

  test('end a write to a reader that stands still', async () => {
    const outcomes = await serveWith(async connection => {
      await readOne(connection)
      await connection.writeFrame(bytes(8_000_000), deadlineIn(200))
    })
    await clientSends(prefixed(Buffer.from('hello')))
    expect(await outcomes.next()).toMatchObject({ ending: 'deadline' })
  })

  test('hold for a process that was stopped across them', async () => {
    const child = startChild(
      `
      const { systemClock } = await compiled('native/clock')
      const { listen } = await compiled('system/listener')
      await listen({
        path: args[0], socketGid: null, clock: systemClock, mode: 'exchange', admit: () => true, onFault: () => {},
        onConnection: async connection => {
          const deadlineBootNs = systemClock.bootNs() + 300_000_000n
          await connection.readFrame({ maximumFrameBytes: 100, deadlineBootNs }).then(
            () => say({ read: true }), error => say({ ending: error.ending }))
        },
      })
      say({ listening: true })`,
      [server.path],
    )
    await child.next()
    const client = await plainClient(server.path)
    await delay(50)
    await standStill(child.process.pid ?? 0)
    client.write(prefixed(Buffer.from('hello')))
    await delay(400)
    child.process.kill('SIGCONT')
    expect(await child.next()).toEqual({ ending: 'deadline' })
    await child.kill()
  })
})
