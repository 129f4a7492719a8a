import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { FrameAdmission } from '../../system/frame-admission.js'
import type { Listener } from '../../system/listener.js'
import { deadlineIn } from '../support/descriptors.js'
import {
  makeSocketFolder,
  plainClient,
  prefixed,
  serve,
  type SocketFolder,
} from '../support/test-listener.js'

const MIB = 1024 * 1024
const nothing = (): void => {}

describe('room for ordinary frames', () => {
  test('is given up to the last byte, and one over waits', () => {
    const admission = new FrameAdmission()
    const held = Array.from({ length: 8 }, () => admission.enter(MIB, nothing))
    expect(held.every(place => place.admitted)).toBe(true)
    let turn = false
    const over = admission.enter(1, () => {
      turn = true
    })
    expect(over.admitted).toBe(false)
    held[0]?.release()
    expect([turn, over.admitted]).toEqual([true, true])
  })

  test('is given in order: a small frame does not pass a larger one that waits', () => {
    const admission = new FrameAdmission()
    const held = Array.from({ length: 8 }, () => admission.enter(MIB, nothing))
    const order: string[] = []
    admission.enter(MIB, () => order.push('larger'))
    admission.enter(10, () => order.push('small'))
    held[0]?.release()
    expect(order).toEqual(['larger'])
    held[1]?.release()
    expect(order).toEqual(['larger', 'small'])
  })

  test('comes back once, however often it is released, also from the queue', () => {
    const admission = new FrameAdmission()
    const place = admission.enter(MIB, nothing)
    place.release()
    place.release()
    expect(admission.held).toEqual({ ordinaryBytes: 0, largeFrames: 0 })
    const held = Array.from({ length: 8 }, () => admission.enter(MIB, nothing))
    const gaveUp = admission.enter(MIB, () => expect.unreachable('it had left the queue'))
    gaveUp.release()
    gaveUp.release()
    for (const other of held) other.release()
    expect(admission.held).toEqual({ ordinaryBytes: 0, largeFrames: 0 })
  })
})

describe('a large frame', () => {
  test('begins one byte over 1 MiB, and there is one at a time', () => {
    const admission = new FrameAdmission()
    expect(admission.enter(MIB, nothing).admitted).toBe(true)
    const first = admission.enter(MIB + 1, nothing)
    const second = admission.enter(8 * MIB, nothing)
    expect([first.admitted, second.admitted]).toEqual([true, false])
    expect(admission.enter(MIB, nothing).admitted).toBe(true)
    first.release()
    expect(second.admitted).toBe(true)
  })

  test('over the request limit is an error of the caller', () => {
    expect(() => new FrameAdmission().enter(8 * MIB + 1, nothing)).toThrow(RangeError)
  })
})

describe('connections under one admission', () => {
  let place: SocketFolder
  let listener: Listener
  const finished: number[] = []
  let authenticate: (() => void) | undefined

  beforeEach(async () => {
    place = makeSocketFolder()
    finished.length = 0
    listener = await serve(place.path, {
      admission: new FrameAdmission(),
      onConnection: async connection => {
        const body = await connection.readFrame({
          maximumFrameBytes: 8 * MIB,
          deadlineBootNs: deadlineIn(5_000),
        })
        finished.push(body.length)
        await new Promise<void>(resolve => {
          authenticate = () => {
            connection.authenticated()
            resolve()
          }
        })
      },
    })
  })
  afterEach(async () => {
    authenticate?.()
    await listener.close()
    place.remove()
  })

  test('read large frames one after the other, the next when the last is authenticated, without losing a byte', async () => {
    const clients = []
    for (const extra of [1, 2, 3]) {
      const client = await plainClient(place.path)
      client.write(prefixed(Buffer.alloc(2 * MIB + extra, 'x')))
      clients.push(client)
      await delay(50)
    }
    for (const expected of [1, 2, 3]) {
      await expect.poll(() => finished).toEqual([1, 2, 3].slice(0, expected).map(extra => 2 * MIB + extra))
      authenticate?.()
    }
  })

  test('give their place back when their peer leaves', async () => {
    const blocking = await plainClient(place.path)
    blocking.write(prefixed(Buffer.alloc(2 * MIB)).subarray(0, 100))
    await delay(50)
    const waiting = await plainClient(place.path)
    waiting.write(prefixed(Buffer.alloc(3 * MIB)))
    await delay(50)
    expect(finished).toEqual([])
    blocking.destroy()
    await expect.poll(() => finished).toEqual([3 * MIB])
  })

  test('are not held up by a large frame when theirs is small', async () => {
    const blocking = await plainClient(place.path)
    blocking.write(prefixed(Buffer.alloc(2 * MIB)).subarray(0, 100))
    await delay(20)
    const small = await plainClient(place.path)
    small.write(prefixed(Buffer.alloc(10)))
    await expect.poll(() => finished).toEqual([10])
  })
})
