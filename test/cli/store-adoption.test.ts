// chio store adopt on a real installation whose disk got another number: refused while it is served, signed by the
// administrator and kept, and then the daemon serves again.
import { lstatSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startTrial, type Trial } from '../../selftest/trial.js'
import { chio, documentOf, type Ended } from '../support/chio.js'
import { pinAnotherDevice, runSql } from '../support/test-store.js'

let trial: Trial

beforeAll(async () => {
  trial = await startTrial()
})
afterAll(() => trial?.stop())

const adopt = (...args: string[]): Promise<Ended> =>
  chio(['store', 'adopt', ...args, '--state', trial.layout.state, '--json'])
const storePath = (role: 'broker' | 'kernel'): string => join(trial.layout[role].directory, `${role}.db`)

describe('chio store adopt', () => {
  test('refuses a word that is no daemon, and a store that is served', async () => {
    expect(await adopt('both')).toMatchObject({ status: 2, stdout: '' })
    const served = await adopt('broker')
    expect(served).toMatchObject({ status: 73, stdout: '' })
    expect(documentOf(served.stderr)).toMatchObject({ code: 'another_instance' })
  })

  test.each(['broker', 'kernel'] as const)('lets the %s serve from a renumbered disk', async role => {
    await trial[role].stop()
    expect(documentOf((await adopt(role)).stderr)).toMatchObject({ code: 'conflict' })
    pinAnotherDevice(storePath(role))
    await expect(trial.start(role)).rejects.toThrow(/chio store adopt/)
    const adopted = await adopt(role)
    expect(adopted).toMatchObject({ status: 0, stderr: '' })
    const foundDevice = String(lstatSync(storePath(role), { bigint: true }).dev)
    expect(documentOf(adopted.stdout)).toMatchObject({
      schema: 'chio.store-adoption.v1',
      store: role,
      pinnedDevice: '1',
      foundDevice,
    })
    expect(lstatSync(storePath(role)).uid).toBe(trial.identities[role].uid)
    await trial.start(role)
  })

  test('refuses an administrator whom the configuration does not name, and changes nothing', async () => {
    const { config } = trial.layout.broker
    const before = readFileSync(config, 'utf8')
    await trial.broker.stop()
    runSql(
      storePath('broker'),
      `INSERT INTO store_pin SELECT 9, store_id, '1', inode, 1, NULL FROM store_pin WHERE sequence = 1`,
    )
    const document = JSON.parse(before) as { administrators: { keys: string[] }; capabilityIssuer: string }
    document.administrators.keys = [document.capabilityIssuer]
    writeFileSync(config, JSON.stringify(document))
    expect(documentOf((await adopt('broker')).stderr)).toMatchObject({ code: 'authorization_denied' })
    writeFileSync(config, before)
    await expect(trial.start('broker')).rejects.toThrow(/chio store adopt/)
    expect(await adopt('broker')).toMatchObject({ status: 0 })
    await trial.start('broker')
  })
})
