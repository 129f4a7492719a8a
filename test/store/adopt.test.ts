import { chmodSync, copyFileSync, lstatSync, renameSync } from 'node:fs'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { systemClock } from '../../native/clock.js'
import { adoptStore } from '../../store/adopt.js'
import { makeTestStore, pinAnotherDevice, TEST_SCHEMA, type TestStore } from '../support/test-store.js'

let made: TestStore

beforeEach(async () => {
  made = await makeTestStore()
})
afterEach(() => made.remove())

const signed = new TextEncoder().encode('signed by an administrator')
const adopt = (authorize = () => signed) =>
  adoptStore(made.path, TEST_SCHEMA, { clock: systemClock, authorize })

describe('adopting a store', () => {
  test('accepts the same file on a renumbered device, once, and keeps the signed document', async () => {
    pinAnotherDevice(made.path)
    await expect(made.open()).rejects.toMatchObject({ code: 'store_replaced' })
    const device = String(lstatSync(made.path, { bigint: true }).dev)
    expect(await adopt()).toMatchObject({ pinnedDevice: '1', foundDevice: device })
    const store = await made.open()
    const rows = store.all<{ adoption: Uint8Array | null }>(
      'SELECT adoption FROM store_pin ORDER BY sequence',
    )
    expect(rows.map(row => row.adoption && Buffer.from(row.adoption).toString())).toEqual([
      null,
      null,
      'signed by an administrator',
    ])
    store.close()
    await expect(adopt()).rejects.toMatchObject({ code: 'conflict' })
  })

  test('changes nothing when the authorization fails', async () => {
    pinAnotherDevice(made.path)
    await expect(
      adopt(() => {
        throw new Error('not signed')
      }),
    ).rejects.toThrow('not signed')
    await expect(made.open()).rejects.toMatchObject({ code: 'store_replaced' })
  })

  test('never accepts a copy', async () => {
    copyFileSync(made.path, `${made.path}.copy`)
    renameSync(`${made.path}.copy`, made.path)
    chmodSync(made.path, 0o600)
    await expect(adopt()).rejects.toMatchObject({ code: 'store_replaced' })
  })

  test('is refused while the store is served', async () => {
    const store = await made.open()
    await expect(adopt()).rejects.toMatchObject({ code: 'another_instance' })
    store.close()
  })
})
