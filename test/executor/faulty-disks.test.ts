// A disk that is full or may not be written, and a file of another owner: refused in one sentence, with nothing made and
// nothing acted on. Everything is real: a small disk of its own, and processes that see it.
import { chownSync, mkdirSync, writeFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { DiskNamespace, type SmallDisk } from '../../selftest/soak/small-disk.js'
import { type ExecutorProcess, startExecutor } from '../support/executor-child.js'
import { authorizationOf, ExecutorWorld } from '../support/executor-world.js'
import { SKIP_REASONS } from '../support/skips.js'
import { describeWhen } from '../support/when.js'

const DISK_MEGABYTES = 8

describeWhen(process.geteuid?.() === 0, SKIP_REASONS.needsRoot, 'an executor', () => {
  let world: ExecutorWorld
  let namespace: DiskNamespace
  let disk: SmallDisk
  const children: ExecutorProcess[] = []
  const start = async (name: string, gate?: string): Promise<ExecutorProcess> => {
    const place = { path: `${world.folder}/disk/ledger.db`, wrapper: namespace.wrapper }
    const authorization = authorizationOf(name, { expires_at_unix_ms: Date.now() + 3_600_000 })
    const gated = gate === undefined ? {} : { gate }
    const child = await startExecutor(world, { authorization, place, ...gated })
    children.push(child)
    return child
  }

  beforeEach(async () => {
    world = await ExecutorWorld.begin()
    mkdirSync(`${world.folder}/disk`, { mode: 0o700 })
    // A disk without a file on it has no size that could be reached.
    writeFileSync(`${world.folder}/disk/ballast`, Buffer.alloc(65_536))
    namespace = await DiskNamespace.open()
    disk = await namespace.put(`${world.folder}/disk`, DISK_MEGABYTES)
  })
  afterEach(async () => {
    await Promise.all(children.splice(0).map(child => child.end()))
    await namespace.close()
    world.end()
  })

  test('whose disk is full makes no ledger and no claim, and goes on when there is room', async () => {
    const child = await start('one')
    await disk.fill()
    const refused = {
      code: 'storage',
      sentence: expect.stringMatching(
        /failed: (ENOSPC|SQLITE_FULL|SQLITE_IOERR_SHMSIZE); free space/,
      ) as string,
    }
    expect(await child.ask('provision')).toEqual(refused)
    expect(await child.ask('list')).toEqual({ files: ['ballast', 'owner.lock'] })
    await disk.free()
    expect(await child.ask('provision')).toMatchObject({ claims: 0 })
    await disk.fill()
    expect(await child.ask('execute')).toEqual(refused)
    expect(world.effects()).toEqual([])
    await disk.free()
    expect(await child.ask('execute')).toEqual({ report: expect.any(String) as string })
    expect(world.effects()).toHaveLength(1)
  })

  test('whose disk fills up while it acts does not know the outcome, and never acts again', async () => {
    const gate = `${world.folder}/gate`
    const child = await start('one', gate)
    await child.ask('provision')
    child.tell()
    while (world.effects().length === 0) await delay(10)
    await disk.fill()
    writeFileSync(gate, '')
    expect(await child.answer()).toMatchObject({ code: 'executor_outcome_unknown' })
    await disk.free()
    expect(await child.ask('execute')).toMatchObject({ code: 'executor_outcome_unknown' })
    expect(world.effects()).toHaveLength(1)
  })

  test('whose disk may not be written is refused, and nothing is provisioned', async () => {
    const child = await start('one')
    await disk.forbidWrites()
    const refused = {
      code: 'storage',
      sentence: expect.stringMatching(/mount the file system .* writable/) as string,
    }
    expect(await child.ask('provision')).toEqual(refused)
    await disk.allowWrites()
    await child.ask('provision')
    await disk.forbidWrites()
    expect(await child.ask('execute')).toEqual(refused)
    await disk.allowWrites()
    expect(await child.ask('execute')).toEqual({ report: expect.any(String) as string })
    expect(world.effects()).toHaveLength(1)
  })

  test('whose ledger, head or directory belongs to another is refused', async () => {
    for (const path of [world.path, `${world.path}.head`, world.folder]) {
      chownSync(path, 65_534, 65_534)
      await expect(world.open()).rejects.toThrow(
        /store custody of .* refused: expected owner uid 0, got 65534/,
      )
      chownSync(path, 0, 0)
    }
    expect(await (await world.open()).counts()).toMatchObject({ claims: 0 })
  })
})
