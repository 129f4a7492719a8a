// Trials: each an installation of its own, beside any other; a daemon of it can die and come back; nothing is left.
import { existsSync, readFileSync, statSync } from 'node:fs'
import { afterEach, describe, expect, test } from 'vitest'
import { freeIds } from '../../selftest/free-ids.js'
import { startDaemon } from '../../selftest/daemon-process.js'
import { startTrial, type Trial } from '../../selftest/trial.js'
import { isBrokerError } from '../../protocol/errors.js'
import { processes } from '../support/needles.js'

const trials: Trial[] = []
afterEach(async () => {
  await Promise.all(trials.splice(0).map(trial => trial.stop()))
})

async function begun(): Promise<Trial> {
  const trial = await startTrial()
  trials.push(trial)
  return trial
}

describe('a trial', () => {
  test('runs beside another, and neither leaves a file or a process', async () => {
    const [one, other] = await Promise.all([begun(), begun()])
    expect(one.layout.state).not.toBe(other.layout.state)
    for (const trial of [one, other]) {
      const session = trial.openHost()
      expect((await session.broker.slotStatus()).state).toBe('free')
      session.close()
    }
    await one.stop()
    expect(existsSync(one.layout.state)).toBe(false)
    expect(processes().filter(({ command }) => command.includes(one.layout.state))).toEqual([])
    expect(existsSync(other.layout.state)).toBe(true)
  })

  test('lets nobody but their owners read its keys, and others only pass through its folder', async () => {
    const { layout, identities } = await begun()
    const owners: [string, number][] = [
      [layout.broker.masterKey, identities.broker.uid],
      [layout.broker.receiptKey, identities.broker.uid],
      [layout.kernel.keys.authority, identities.kernel.uid],
      [layout.adminKey, process.geteuid?.() ?? 0],
    ]
    for (const [path, uid] of owners) {
      const stats = statSync(path)
      expect([path, stats.mode & 0o7777, stats.uid]).toEqual([path, 0o600, uid])
    }
    expect(statSync(layout.state).mode & 0o7777).toBe(identities.cage === null ? 0o700 : 0o711)
  })

  test('refuses a second daemon on its state with 73, naming the first', async () => {
    const trial = await begun()
    for (const role of ['kernel', 'broker'] as const) {
      const second: unknown = await startDaemon(trial.command(role)).catch((error: unknown) => error)
      if (!isBrokerError(second)) throw new Error('expected a refusal')
      expect(second.code).toBe('another_instance')
      expect(second.message).toContain(String(trial[role].pid))
    }
  })

  test('gets a killed daemon back on the same state', async () => {
    const trial = await begun()
    const session = trial.openHost()
    await trial.kill('broker')
    await expect(session.broker.slotStatus()).rejects.toMatchObject({ code: 'broker_unavailable' })
    await trial.start('broker')
    expect((await session.broker.slotStatus()).state).toBe('free')
    const { ownerEpoch } = await session.kernel.call('status', {})
    await trial.kill('kernel')
    await trial.start('kernel')
    expect((await session.kernel.call('status', {})).ownerEpoch).toBe(ownerEpoch + 1)
    session.close()
  })
})

test("free ids are nobody's, and in the range of transient users", () => {
  const ids = freeIds(3)
  expect(new Set(ids).size).toBe(3)
  const passwd = readFileSync('/etc/passwd', 'utf8')
  for (const id of ids) {
    expect(id).toBeGreaterThanOrEqual(61_184)
    expect(id).toBeLessThanOrEqual(65_519)
    expect(passwd).not.toContain(`:${id}:`)
  }
  expect(() => freeIds(5_000)).toThrow('expected 5000 free ids')
})
