// What a new owner makes of what the last one left, and what its nonces are worth afterwards.
import { copyFileSync, rmSync } from 'node:fs'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { recoveryOf } from '../../../kernel/settling/recovery.js'
import { openTables } from '../../../kernel/sqlite/tables.js'
import { ADMISSION_STATES, isBeforeDispatch } from '../../../protocol/admission-states.js'
import { AdmissionWorld } from '../../support/admission-world.js'
import { runSql } from '../../support/test-store.js'

let world: AdmissionWorld
beforeEach(async () => {
  world = await AdmissionWorld.make()
})
afterEach(() => world.remove())

const ready = async () => world.retain(await world.reserve(world.announcement()))
const found = async ({ operationId }: { operationId: string }) => {
  const operation = await world.store.findOperation(operationId)
  if (operation === undefined) throw new TypeError('operation: expected a known one, got none')
  return operation
}
const liveNonces = () => world.tables.transaction('count', move => move.head.liveNonces)

describe('recovery', () => {
  test('adopts a live reservation: operation and nonce get the new epoch, and it can be started', async () => {
    const left = await ready()
    await world.reopen()
    const adopted = await found(left)
    expect(adopted).toMatchObject({ leaseEpoch: 2, state: 'ready_to_dispatch', version: left.version + 1 })
    expect(await world.start(adopted)).toMatchObject({ state: 'dispatch_committed' })
    const { history } = await world.store.readRecord(adopted)
    expect(history.map(({ cause }) => cause)).toContain('adopted by owner epoch 2')
  })

  test('takes back a reservation whose nonce expired meanwhile, and gives its execution back', async () => {
    const left = await world.reserve(world.announcement())
    world.close()
    world.clock.pass(30_000)
    await world.open()
    expect(await found(left)).toMatchObject({ state: 'compensated_before_dispatch' })
    expect(await world.store.findGrant(world.grant.grantId)).toMatchObject({ captured: 0, held: 0 })
    expect(await liveNonces()).toBe(0)
  })

  test('leaves an expired one that the broker may know to be settled, and it cannot be started', async () => {
    const left = await ready()
    world.close()
    world.clock.pass(30_000)
    await world.open()
    const still = await found(left)
    expect(still).toMatchObject({ leaseEpoch: 1, state: 'ready_to_dispatch', version: left.version })
    await expect(world.start(still)).rejects.toMatchObject({ code: 'execution_nonce_not_adopted' })
    await world.store.compensate({ cause: 'settled', operationId: left.operationId })
    expect(await liveNonces()).toBe(0)
  })

  test('never touches what was dispatched', async () => {
    const started = await world.start(await ready())
    world.clock.pass(86_400_000)
    await world.reopen()
    expect(await found(started)).toEqual(started)
  })

  test('is decided for every state, and takes nothing back that may have been dispatched', async () => {
    const operation = await ready()
    const now = world.clock.unixMs()
    const decided = ADMISSION_STATES.map(state => [state, recoveryOf({ ...operation, state }, now)] as const)
    for (const [state, recovery] of decided) {
      if (!isBeforeDispatch(state)) expect(recovery).toBe('settle')
      else expect(recovery).toBe(state === 'ready_to_dispatch' ? 'adopt' : 'compensate')
    }
  })

  test('adopts twice when two kernels end in a row', async () => {
    const left = await ready()
    await world.reopen()
    await world.reopen()
    expect(await world.start(await found(left))).toMatchObject({ leaseEpoch: 3 })
  })
})

describe('a nonce that was reserved', () => {
  test('starts its own operation alone, and a start that was refused changes neither', async () => {
    const [a, b] = [await ready(), await ready()]
    await expect(world.start(b, a)).rejects.toMatchObject({ code: 'execution_nonce_binding' })
    expect([await found(a), await found(b)]).toEqual([a, b])
    await world.start(a)
    await world.start(b)
  })

  test('that an earlier owner reserved and nobody adopted is refused', async () => {
    const operation = await ready()
    const raised = 'UPDATE kernel_state SET owner_epoch = owner_epoch + 1'
    world.close()
    expect(runSql(world.path, raised).status).toBe(0)
    await world.open()
    expect(await found(operation)).toMatchObject({ leaseEpoch: 3 })
    const disowned = 'UPDATE execution_nonces SET owner_epoch = 1'
    expect(runSql(world.path, disowned).status).toBe(0)
    await expect(world.start(await found(operation))).rejects.toMatchObject({
      code: 'execution_nonce_not_adopted',
    })
  })

  test('is spent with its operation: its id is never reserved again', async () => {
    const operation = await ready()
    const nonces = await world.tables.transaction('again', move => {
      const nonce = { ...world.nonceOf(operation), operationId: 'f'.repeat(64) }
      const bootEnd = { bootId: 'x', expiresBootMs: 1 }
      try {
        move.nonces.reserve(nonce, { bootEnd, capacity: 9, issuer: world.keys.kernel.publicKey })
        return 'reserved'
      } catch (error) {
        return (error as { code: string }).code
      }
    })
    expect(nonces).toBe('execution_nonce_replayed')
  })

  test('does not outlive its interval by the boot clock when the wall clock stands still', async () => {
    const operation = await ready()
    world.clock.pass(30_000)
    world.clock.stepWall(-4_900)
    await expect(world.start(operation)).rejects.toMatchObject({ code: 'execution_nonce_expired' })
  })

  test('of a full store is refused, and none is evicted', async () => {
    const small = await AdmissionWorld.make({ capacity: 1 })
    try {
      const first = await small.retain(await small.reserve(small.announcement()))
      await expect(small.reserve(small.announcement())).rejects.toMatchObject({
        code: 'execution_nonce_capacity',
      })
      await small.start(first)
      await small.reserve(small.announcement())
    } finally {
      small.remove()
    }
  })

  test.each([
    [
      'changed',
      `UPDATE execution_nonces SET expires_at_unix_seconds = 9`,
      /a nonce is fixed|a nonce ends once/,
    ],
    ['forgotten', 'DELETE FROM execution_nonces', /nonces are kept/],
    ['opened again', 'UPDATE execution_nonces SET live = 1', /a nonce ends once/],
    ['rewritten in its history', `UPDATE execution_nonce_transitions SET kind = 'x'`, /append-only/],
  ])('cannot be %s, whoever asks', async (_what, statement, sentence) => {
    await world.start(await ready())
    expect(runSql(world.path, statement).stderr).toMatch(sentence)
  })
})

describe('one store', () => {
  test('serves exactly one of two kernels that open it at once', async () => {
    world.close()
    const opened = await Promise.allSettled(
      [1, 2, 3].map(() => openTables(world.path, { clock: world.clock })),
    )
    const served = opened.filter(({ status }) => status === 'fulfilled')
    const refused = opened.flatMap(one => (one.status === 'rejected' ? [one.reason as unknown] : []))
    expect(served).toHaveLength(1)
    expect(refused).toEqual(
      [1, 2].map(() => expect.objectContaining({ code: 'another_instance' }) as unknown),
    )
    for (const one of opened) if (one.status === 'fulfilled') one.value.close()
  })

  test('that is put back as it was yesterday is refused, whatever was spent since', async () => {
    world.close()
    const yesterday = `${world.path}.yesterday`
    copyFileSync(world.path, yesterday)
    await world.open()
    await world.start(await ready())
    world.close()
    for (const name of [world.path, `${world.path}-wal`, `${world.path}-shm`]) rmSync(name, { force: true })
    copyFileSync(yesterday, world.path)
    await expect(world.open()).rejects.toMatchObject({ code: 'store_replaced' })
  })
})

test('a move that was judged by an older version is refused with the word to reread', async () => {
  const stale = await world.reserve(world.announcement())
  await world.retain(stale)
  const move = world.tables.transaction('stale', tx =>
    tx.operations.replace(stale, { ...stale, version: stale.version + 1 }),
  )
  await expect(move).rejects.toThrow(/expected version 4 still, got a later one; reread the operation/)
})
