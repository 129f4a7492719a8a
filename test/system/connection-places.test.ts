import { beforeEach, describe, expect, test } from 'vitest'
import { MAXIMUM_CONNECTIONS_PER_CONNECTOR } from '../../protocol/limits.js'
import { ConnectionPlaces, type Guest, type PlaceLimits } from '../../system/connection-places.js'
import { HeldClock } from '../support/clock.js'

class TestGuest implements Guest {
  readonly acceptedBootNs: bigint
  wasHeard: boolean
  closed = false

  constructor(acceptedBootNs: bigint, wasHeard: boolean) {
    this.acceptedBootNs = acceptedBootNs
    this.wasHeard = wasHeard
  }

  closeNow(): void {
    this.closed = true
  }
}

const HOST = { uid: 1_000, pid: 10 }
const OTHER = { uid: 1_000, pid: 11 }
const ROOT = { uid: 0, pid: 12 }
let clock: HeldClock
let places: ConnectionPlaces
let droppedPids: number[]

function open(limits: PlaceLimits = {}): void {
  droppedPids = []
  places = new ConnectionPlaces(clock, { administratorUids: [0], ...limits }, ({ pid }) =>
    droppedPids.push(pid),
  )
}

/** Connects; says what became of it. */
function connect(peer: { uid: number; pid: number }, wasHeard = false): TestGuest | string {
  const place = places.find(peer)
  if (place !== 'ordinary' && place !== 'kept') return place
  const guest = new TestGuest(clock.bootNs(), wasHeard)
  places.take(guest, peer, place)
  return guest
}

function connected(peer: { uid: number; pid: number }, wasHeard = false): TestGuest {
  const guest = connect(peer, wasHeard)
  if (typeof guest === 'string') throw new Error(guest)
  return guest
}

beforeEach(() => {
  clock = new HeldClock()
  open()
})

describe('a full house', () => {
  test('drops the oldest connection that said nothing complete, and no other', () => {
    open({ maximumConnections: 3 })
    const heard = connected(HOST, true)
    const [second, third] = [connected(HOST), connected(OTHER)]
    connected(OTHER)
    expect([heard.closed, second.closed, third.closed]).toEqual([false, true, false])
    connected(OTHER)
    expect([heard.closed, third.closed, places.size]).toEqual([false, true, 3])
    expect(droppedPids).toEqual([10, 11])
  })

  test('turns a newcomer away when everybody in it was heard', () => {
    open({ maximumConnections: 2 })
    connected(HOST, true)
    connected(OTHER, true)
    expect(connect({ uid: 2_000, pid: 20 })).toBe('capacity')
    expect(droppedPids).toEqual([])
  })

  test('has room made by whoever takes most of it', () => {
    open({ maximumConnections: 4 })
    const modest = connected({ uid: 2_000, pid: 20 })
    const greedy = [connected(HOST), connected(HOST), connected(OTHER)]
    connected({ uid: 3_000, pid: 30 })
    expect([modest.closed, greedy[0]?.closed]).toEqual([false, true])
  })
})

describe('one uid', () => {
  test('makes room among its own', () => {
    open({ maximumConnectionsPerUid: 2 })
    const stranger = connected({ uid: 2_000, pid: 20 })
    const first = connected(HOST)
    connected(OTHER)
    connected(OTHER)
    expect([stranger.closed, first.closed]).toEqual([false, true])
  })

  test('is turned away at its limit when all of them were heard, while another uid gets in', () => {
    open({ maximumConnectionsPerUid: 2 })
    connected(HOST, true)
    connected(OTHER, true)
    expect(connect(HOST)).toBe('uid_capacity')
    expect(connect({ uid: 2_000, pid: 20 })).toBeInstanceOf(TestGuest)
  })
})

describe('one connecting process', () => {
  test('makes room among its own, so that another process of its uid loses nothing', () => {
    const other = connected(OTHER)
    const flood = Array.from({ length: MAXIMUM_CONNECTIONS_PER_CONNECTOR + 1 }, () => connected(HOST))
    expect([other.closed, flood[0]?.closed, flood[1]?.closed]).toEqual([false, true, false])
  })

  test('is turned away at its limit when all of them were heard', () => {
    for (let count = 0; count < MAXIMUM_CONNECTIONS_PER_CONNECTOR; count += 1) connected(HOST, true)
    expect(connect(HOST)).toBe('connector_capacity')
    expect(connect(OTHER)).toBeInstanceOf(TestGuest)
  })
})

describe('the place that is kept for administration', () => {
  test('is there when every other is taken, once, and for an administrator alone', () => {
    open({ maximumConnections: 2 })
    connected(HOST, true)
    connected(OTHER, true)
    expect(connect({ uid: 2_000, pid: 20 })).toBe('capacity')
    expect(places.find(ROOT)).toBe('kept')
    const first = connected(ROOT, true)
    expect(connect({ uid: 0, pid: 13 })).toBe('capacity')
    places.leave(first)
    expect(places.find({ uid: 0, pid: 13 })).toBe('kept')
  })

  test('where everybody is one uid, is for a process without another connection', () => {
    open({ administratorUids: [HOST.uid], maximumConnectionsPerUid: 2 })
    connected(HOST, true)
    connected(HOST, true)
    expect(connect(HOST)).toBe('uid_capacity')
    expect(places.find(OTHER)).toBe('kept')
  })

  test('is not kept from the next by one that says nothing, nor for longer than a command takes', () => {
    open({ maximumConnections: 1 })
    connected(HOST, true)
    const silent = connected(ROOT)
    const busy = connected({ uid: 0, pid: 13 }, true)
    expect(silent.closed).toBe(true)
    expect(connect({ uid: 0, pid: 14 })).toBe('capacity')
    clock.pass(6_000)
    connected({ uid: 0, pid: 14 }, true)
    expect(busy.closed).toBe(true)
  })
})
