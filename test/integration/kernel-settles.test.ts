// A host that goes away at any step: the kernel settles its operation from the broker, by itself. Kernel, broker,
// stores, sockets and provider are real; time is let pass on one clock that both read.
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { BrokerRecordsClient } from '../../client/broker-records.js'
import type { Clock } from '../../protocol/clock.js'
import { startOf } from '../support/brokered-operation.js'
import { KernelAndBroker } from '../support/kernel-and-broker.js'

const NONCE_MS = 30_000
/** Start + 30 s + the request's five seconds + 10 s. */
const STARTED_MS = 45_000

let pair: KernelAndBroker
beforeEach(async () => {
  pair = await KernelAndBroker.start()
})
afterEach(() => pair.close())

const view = (operationId: string) => pair.kernel.client.call('inspect', { operationId })
const ends = (operationId: string, state: string) =>
  vi.waitFor(async () => expect((await view(operationId)).state).toBe(state), {
    interval: 50,
    timeout: 10_000,
  })
const start = (operation: Parameters<typeof startOf>[0]) =>
  pair.kernel.client.call('start', startOf(operation))
const held = async () => {
  const { executions, held: reserved } = await pair.kernel.client.call('show_grant', {
    grantId: pair.grant.grantId,
  })
  return { executions, held: reserved }
}

/** A wall clock of the kernel alone that was set forth. */
const aheadOf = (clock: Clock, aheadMs: number): Clock => ({
  bootNs: () => clock.bootNs(),
  unixMs: () => clock.unixMs() + aheadMs,
})
const recordsOf = ({ clock, pins }: KernelAndBroker): BrokerRecordsClient =>
  new BrokerRecordsClient(pins, clock)

describe('a host that goes away before the start', () => {
  test('and never registered: the operation is given back', async () => {
    const { operationId } = await pair.authorized()
    pair.clock.pass(NONCE_MS)
    await ends(operationId, 'compensated_before_dispatch')
    expect(await held()).toEqual({ executions: 0, held: 0 })
  })

  test('and had registered: the attempt is released at the broker, then the operation is given back', async () => {
    const operation = await pair.authorized()
    await pair.register(operation)
    pair.clock.pass(NONCE_MS)
    await ends(operation.operationId, 'compensated_before_dispatch')
    const status = await pair.client.attemptStatus(operation.registration.ids.attemptId)
    expect(status).toMatchObject({ reason: 'released', state: 'failed' })
    await expect(pair.prepare(operation)).rejects.toThrow()
  })

  test('and had prepared: the slot is freed by the end of its stream, the operation given back', async () => {
    const operation = await pair.authorized()
    await pair.register(operation)
    const { stream } = await pair.prepare(operation)
    stream.close()
    pair.clock.pass(NONCE_MS)
    await ends(operation.operationId, 'compensated_before_dispatch')
    expect((await pair.client.slotStatus()).state).toBe('free')
  })
})

describe('a host that goes away after the start', () => {
  test('and never registered: not accepted, the execution stays spent, a late registration dispatches nothing', async () => {
    const operation = await pair.authorized()
    await start(operation)
    pair.clock.pass(STARTED_MS)
    await ends(operation.operationId, 'not_accepted_after_dispatch_commit')
    expect(await held()).toEqual({ executions: 1, held: 0 })
    await expect(pair.register(operation)).rejects.toThrow()
    expect(pair.provider.hits).toBe(0)
  })

  test('and had registered alone: the attempt is released and ends the operation by its signed failure', async () => {
    const operation = await pair.authorized()
    await pair.register(operation)
    await start(operation)
    pair.clock.pass(STARTED_MS)
    await ends(operation.operationId, 'not_accepted_after_dispatch_commit')
    expect((await view(operation.operationId)).lastError).toMatch(/^chio\./)
    expect(pair.provider.hits).toBe(0)
  })

  test('and had prepared and closed the stream: not accepted', async () => {
    const operation = await pair.authorized()
    await pair.register(operation)
    const { stream } = await pair.prepare(operation)
    await start(operation)
    stream.close()
    pair.clock.pass(STARTED_MS)
    await ends(operation.operationId, 'not_accepted_after_dispatch_commit')
  })

  test('and after the execution: completed by the broker’s receipt, one request at the provider', async () => {
    const operation = await pair.authorized()
    await pair.register(operation)
    const { stream } = await pair.prepare(operation)
    await start(operation)
    await stream.submit(pair.clock.bootNs() + 10_000_000_000n)
    pair.clock.pass(STARTED_MS)
    await ends(operation.operationId, 'completed')
    expect(pair.provider.hits).toBe(1)
    expect(await held()).toEqual({ executions: 1, held: 0 })
  })

  test('while the broker is away: it waits, says so, and settles when the broker is back', async () => {
    const operation = await pair.authorized()
    await pair.register(operation)
    const { stream } = await pair.prepare(operation)
    await start(operation)
    await stream.submit(pair.clock.bootNs() + 10_000_000_000n)
    await pair.stopBroker()
    pair.clock.pass(STARTED_MS)
    await vi.waitFor(
      async () => expect((await view(operation.operationId)).settlement).toMatch(/cannot be reached/),
      {
        timeout: 10_000,
      },
    )
    expect(await pair.kernel.client.call('status', {})).toMatchObject({ brokerReachable: false, waiting: 1 })
    await pair.startBroker()
    await ends(operation.operationId, 'completed')
    expect(await pair.kernel.client.call('status', {})).toMatchObject({ brokerReachable: true, waiting: 0 })
  })

  test('while the kernel is away: its successor settles it', async () => {
    const operation = await pair.authorized()
    await pair.register(operation)
    const { stream } = await pair.prepare(operation)
    await start(operation)
    await stream.submit(pair.clock.bootNs() + 10_000_000_000n)
    await pair.kernel.restart()
    pair.clock.pass(STARTED_MS)
    await ends(operation.operationId, 'completed')
  })

  test('and after an execution whose answer a guard refuses: denied, from the output that the broker kept', async () => {
    const outputGuards = { jsonSchema: null, maximumBodyBytes: 1, secretScan: true }
    await pair.kernel.restart({ clock: pair.clock, outputGuards, records: recordsOf(pair) })
    const operation = await pair.authorized()
    await pair.register(operation)
    const { stream } = await pair.prepare(operation)
    await start(operation)
    await stream.submit(pair.clock.bootNs() + 10_000_000_000n)
    pair.clock.pass(STARTED_MS)
    await ends(operation.operationId, 'denied_after_delivery')
    expect(pair.provider.hits).toBe(1)
    expect(await held()).toEqual({ executions: 1, held: 0 })
    expect((await view(operation.operationId)).lastError).toMatch(
      /^output guard size: expected a body of at most 1/,
    )
  })
})

describe('clocks that are further apart than their owners permit', () => {
  test('are named as what is in the way, and nothing ends before they agree', async () => {
    const operation = await pair.authorized()
    await pair.register(operation)
    await start(operation)
    await pair.kernel.restart({ clock: aheadOf(pair.clock, STARTED_MS), records: recordsOf(pair) })
    await vi.waitFor(
      async () =>
        expect((await view(operation.operationId)).settlement).toMatch(/see that both clocks agree/),
      { timeout: 10_000 },
    )
    expect((await view(operation.operationId)).state).toBe('dispatch_committed')
    expect(await pair.kernel.client.call('status', {})).toMatchObject({ brokerReachable: true, waiting: 1 })
    pair.clock.pass(STARTED_MS)
    await pair.kernel.restart({ clock: pair.clock, records: recordsOf(pair) })
    await ends(operation.operationId, 'not_accepted_after_dispatch_commit')
  })
})

describe('a cancelled operation', () => {
  test('is released at the broker too, without the host', async () => {
    const operation = await pair.authorized()
    await pair.register(operation)
    const { operationId } = operation
    await pair.kernel.client.call('cancel', { operationId })
    await vi.waitFor(async () =>
      expect(await pair.client.attemptStatus(operation.registration.ids.attemptId)).toMatchObject({
        reason: 'released',
      }),
    )
  })
})
