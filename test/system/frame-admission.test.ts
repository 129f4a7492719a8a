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
const SMALL = 8 * 1024
const nothing = (): void => {}

let connectors = 0
/** A frame of a process that has no other. */
function enter(admission: FrameAdmission, uid: number, bytes: number, onAdmitted: () => void) {
  connectors += 1
  return admission.of({ uid, pid: connectors }).enter(bytes, onAdmitted)
}

/** Four uids fill the ordinary room, each with its part. */
function filled(admission: FrameAdmission) {
  return [1, 2, 3, 4].flatMap(uid => [MIB, MIB / 2].map(bytes => enter(admission, uid, bytes, nothing)))
}

describe('room for ordinary frames', () => {
  test('is given up to the last byte, and one over waits', () => {
    const admission = new FrameAdmission()
    const held = filled(admission)
    expect(held.every(place => place.admitted)).toBe(true)
    let turn = false
    const over = enter(admission, 5, SMALL + 1, () => {
      turn = true
    })
    expect(over.admitted).toBe(false)
    held[0]?.release()
    expect([turn, over.admitted]).toEqual([true, true])
  })

  test('is given in order within one uid: a smaller frame does not pass a larger one that waits', () => {
    const admission = new FrameAdmission()
    const held = filled(admission)
    const order: string[] = []
    enter(admission, 5, MIB, () => order.push('larger'))
    enter(admission, 5, SMALL + 1, () => order.push('smaller'))
    held[1]?.release()
    expect(order).toEqual([])
    held[0]?.release()
    expect(order).toEqual(['larger', 'smaller'])
  })

  test('of one uid is a quarter: what it announces beyond waits, and another uid enters at once', () => {
    const admission = new FrameAdmission()
    const first = enter(admission, 1, MIB, nothing)
    const second = enter(admission, 1, MIB, nothing)
    expect([first.admitted, second.admitted]).toEqual([true, false])
    expect(enter(admission, 2, MIB, nothing).admitted).toBe(true)
    first.release()
    expect(second.admitted).toBe(true)
  })

  test('of one process is a MiB: another process of its uid enters at once with what is left', () => {
    const admission = new FrameAdmission()
    const flooding = admission.of({ uid: 1, pid: 7 })
    const first = flooding.enter(MIB, nothing)
    const second = flooding.enter(SMALL + 1, nothing)
    expect([first.admitted, second.admitted]).toEqual([true, false])
    expect(admission.of({ uid: 1, pid: 8 }).enter(MIB / 2, nothing).admitted).toBe(true)
    first.release()
    expect(second.admitted).toBe(true)
  })

  test('comes back once, however often it is released, also from the queue', () => {
    const admission = new FrameAdmission()
    const none = { smallBytes: 0, ordinaryBytes: 0, largeFrames: 0 }
    const place = enter(admission, 1, MIB, nothing)
    place.release()
    place.release()
    expect(admission.held).toEqual(none)
    const held = filled(admission)
    const gaveUp = enter(admission, 1, MIB, () => expect.unreachable('it had left the queue'))
    gaveUp.release()
    gaveUp.release()
    for (const other of held) other.release()
    expect(admission.held).toEqual(none)
  })
})

describe('a small frame', () => {
  test('never waits, however many larger ones were announced, of its own uid too', () => {
    const admission = new FrameAdmission()
    filled(admission)
    for (let count = 0; count < 64; count++) enter(admission, 1, MIB, nothing)
    enter(admission, 1, 8 * MIB, nothing)
    const small = Array.from({ length: 256 }, (_, index) => enter(admission, index % 4, SMALL, nothing))
    expect(small.every(place => place.admitted)).toBe(true)
    expect(admission.held).toEqual({ smallBytes: 256 * SMALL, ordinaryBytes: 6 * MIB, largeFrames: 1 })
  })
})

describe('a large frame', () => {
  test('begins one byte over 1 MiB, and there is one at a time', () => {
    const admission = new FrameAdmission()
    expect(enter(admission, 1, MIB, nothing).admitted).toBe(true)
    const first = enter(admission, 1, MIB + 1, nothing)
    const second = enter(admission, 1, 8 * MIB, nothing)
    expect([first.admitted, second.admitted]).toEqual([true, false])
    expect(enter(admission, 2, MIB, nothing).admitted).toBe(true)
    first.release()
    expect(second.admitted).toBe(true)
  })

  test('of another uid comes before the many that one uid announced', () => {
    const admission = new FrameAdmission()
    const order: string[] = []
    const first = enter(admission, 1, 2 * MIB, nothing)
    const second = enter(admission, 1, 2 * MIB, () => order.push('second of 1'))
    enter(admission, 1, 2 * MIB, () => order.push('third of 1'))
    const other = enter(admission, 2, 2 * MIB, () => order.push('first of 2'))
    first.release()
    expect(order).toEqual(['first of 2'])
    other.release()
    expect(order).toEqual(['first of 2', 'second of 1'])
    second.release()
    expect(order).toEqual(['first of 2', 'second of 1', 'third of 1'])
  })

  test('of another process comes before the many that one process of its uid announced', () => {
    const admission = new FrameAdmission()
    const order: string[] = []
    const flooding = admission.of({ uid: 1, pid: 7 })
    const first = flooding.enter(2 * MIB, nothing)
    for (const name of ['second', 'third']) flooding.enter(2 * MIB, () => order.push(name))
    const other = admission.of({ uid: 1, pid: 8 }).enter(2 * MIB, () => order.push('another process'))
    first.release()
    other.release()
    expect(order).toEqual(['another process', 'second'])
  })

  test('over the request limit is an error of the caller', () => {
    expect(() => enter(new FrameAdmission(), 1, 8 * MIB + 1, nothing)).toThrow(RangeError)
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

  test('with small frames are served while the same uid announces 63 frames of 1 MiB and sends none', async () => {
    for (let count = 0; count < 63; count++) {
      const silent = await plainClient(place.path)
      silent.write(prefixed(Buffer.alloc(MIB)).subarray(0, 4))
    }
    await delay(50)
    const asked = process.hrtime.bigint()
    const small = await plainClient(place.path)
    small.write(prefixed(Buffer.alloc(200)))
    await expect.poll(() => finished, { interval: 5 }).toEqual([200])
    expect(Number(process.hrtime.bigint() - asked) / 1e6).toBeLessThan(1_000)
  })
})
