// A ledger whose disk alone has another number: accepted by its executor's signature, kept, and used as before. Nothing
// else of a ledger that is not as it was is accepted by it.
import { copyFileSync, renameSync, rmSync } from 'node:fs'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { ExecutorLedger } from '../../executor/ledger.js'
import { headPathOf } from '../../executor/ledger-head.js'
import type { SigningKey } from '../../protocol/keys.js'
import {
  authorizationOf,
  EXECUTOR,
  EXECUTOR_KEY,
  ExecutorWorld,
  hexOf,
  KERNEL_KEY,
  MACHINE_TIME,
} from '../support/executor-world.js'
import { pinAnotherDevice } from '../support/test-store.js'

let world: ExecutorWorld
beforeEach(async () => {
  world = await ExecutorWorld.begin(2)
})
afterEach(() => world.end())

const adopt = (key: SigningKey = EXECUTOR_KEY) =>
  ExecutorLedger.adopt(world.path, { executor: EXECUTOR, key }, MACHINE_TIME)

describe('a ledger on a disk that was renumbered', () => {
  test('is refused until its executor signs for it, and replays what it retained', async () => {
    const authorization = authorizationOf('one')
    const report = hexOf(await world.execute(authorization))
    pinAnotherDevice(world.path)
    await expect(world.open()).rejects.toMatchObject({ code: 'store_replaced' })
    expect(await adopt()).toMatchObject({ pinnedDevice: '1' })
    const ledger = await world.open()
    expect(hexOf(await world.executeBy(ledger, authorization))).toBe(report)
    expect(hexOf(await world.executeBy(ledger, authorizationOf('two')))).not.toBe(report)
    expect(world.effects()).toHaveLength(2)
    await expect(adopt()).rejects.toMatchObject({ code: 'conflict' })
  })

  test('is not adopted by another key', async () => {
    pinAnotherDevice(world.path)
    await expect(adopt(KERNEL_KEY)).rejects.toMatchObject({ code: 'executor_mismatch' })
    await expect(world.open()).rejects.toMatchObject({ code: 'store_replaced' })
  })

  test('is not adopted without a head that its executor signed for it', async () => {
    pinAnotherDevice(world.path)
    const other = await ExecutorWorld.begin(2)
    copyFileSync(headPathOf(other.path), headPathOf(world.path))
    other.end()
    await expect(adopt()).rejects.toMatchObject({ code: 'store_replaced' })
    rmSync(headPathOf(world.path))
    await expect(adopt()).rejects.toMatchObject({ code: 'store_missing' })
    await expect(world.open()).rejects.toMatchObject({ code: 'store_replaced' })
  })

  test('is not adopted as a copy', async () => {
    pinAnotherDevice(world.path)
    copyFileSync(world.path, `${world.path}.copy`)
    renameSync(`${world.path}.copy`, world.path)
    await expect(adopt()).rejects.toMatchObject({ code: 'store_replaced' })
  })
})
