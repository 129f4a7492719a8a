import { chmodSync, copyFileSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { systemClock } from '../../native/clock.js'
import { provisionStore } from '../../store/provision.js'
import { startChild } from '../support/compiled-child.js'
import { CHILD_OPENS, makeTestStore, runSql, TEST_SCHEMA, type TestStore } from '../support/test-store.js'

let made: TestStore

beforeEach(async () => {
  made = await makeTestStore()
})
afterEach(() => made.remove())

/** A daemon that is killed while it serves, after so many commits and the checkpoint that they bring. */
async function killedAfter(commits: number): Promise<void> {
  const child = startChild(
    `${CHILD_OPENS}
    const store = await open()
    const first = store.get('SELECT count(*) AS n FROM event').n
    for (let number = first + 1; number <= first + ${commits}; number += 1) {
      await store.transaction('append', tx => tx.run("INSERT INTO event VALUES (?, 'x', NULL)", number))
    }
    if (${commits} >= 32) await new Promise(resolve => setTimeout(resolve, 500))
    say({ checkpoints: store.get('SELECT checkpoints AS n FROM store_state').n })
    process.kill(process.pid, 'SIGKILL')`,
    [made.path],
  )
  expect(await child.next()).toEqual({ checkpoints: commits >= 32 ? 1 : 0 })
  await child.ended()
}

/** Writes older content into the same inode, as `cp` does. */
function putBack(copy: string): void {
  writeFileSync(made.path, readFileSync(copy))
  for (const suffix of ['-wal', '-shm']) rmSync(made.path + suffix, { force: true })
}

describe('a store that went back', () => {
  test.each([3, 40])(
    'is refused when the log of a killed daemon was removed after %i commits',
    async commits => {
      await killedAfter(commits)
      for (const suffix of ['-wal', '-shm']) rmSync(made.path + suffix)
      await expect(made.open()).rejects.toMatchObject({ code: 'store_replaced' })
      await expect(made.open()).rejects.toThrow(/expected head \d+ or later, got \d+/)
    },
  )

  test('is refused when the content of an earlier opening was written into it', async () => {
    const copy = join(made.folder, 'yesterday')
    ;(await made.open()).close()
    copyFileSync(made.path, copy)
    ;(await made.open()).close()
    putBack(copy)
    await expect(made.open()).rejects.toMatchObject({ code: 'store_replaced' })
  })

  test('is refused when a copy made while it was served was written into it', async () => {
    const copy = join(made.folder, 'copy')
    const store = await made.open()
    copyFileSync(made.path, copy)
    store.close()
    putBack(copy)
    await expect(made.open()).rejects.toMatchObject({ code: 'store_replaced' })
  })
})

/** Serves, and is killed; a copy of file and log is made between its commits. */
async function copiedWhileServed(copy: string, between: string): Promise<void> {
  const child = startChild(
    `${CHILD_OPENS}
    const { copyFileSync } = await import('node:fs')
    const store = await open()
    const commit = number => store.transaction('append', tx => tx.run("INSERT INTO event VALUES (?, 'x', NULL)", number))
    await commit(1)
    for (const suffix of ['', '-wal']) copyFileSync(args[0] + suffix, args[1] + suffix)
    ${between}
    process.kill(process.pid, 'SIGKILL')`,
    [made.path, copy],
  )
  await child.ended()
}

describe('a copy of file and log, made while a daemon served that was then killed', () => {
  const copyAt = (): string => join(made.folder, 'copy')

  test('is refused when it is one commit old', async () => {
    await copiedWhileServed(copyAt(), 'await commit(2)')
    putBack(copyAt())
    copyFileSync(`${copyAt()}-wal`, `${made.path}-wal`)
    chmodSync(`${made.path}-wal`, 0o600)
    await expect(made.open()).rejects.toMatchObject({ code: 'store_replaced' })
  })

  test('is taken when nothing was committed since', async () => {
    await copiedWhileServed(copyAt(), '')
    putBack(copyAt())
    copyFileSync(`${copyAt()}-wal`, `${made.path}-wal`)
    chmodSync(`${made.path}-wal`, 0o600)
    const store = await made.open()
    expect(store.all('SELECT * FROM event')).toHaveLength(1)
    store.close()
  })

  test('is refused when its file alone was put back below the newest log', async () => {
    await copiedWhileServed(
      copyAt(),
      `for (let number = 2; number <= 40; number += 1) await commit(number)
       while (store.get('SELECT checkpoints AS n FROM store_state').n === 0) await new Promise(setImmediate)
       await commit(41)`,
    )
    writeFileSync(made.path, readFileSync(copyAt()))
    await expect(made.open()).rejects.toMatchObject({ code: 'store_replaced' })
    await expect(made.open()).rejects.toThrow(/expected a file of age \d+ or later, got \d+/)
  })
})

describe('a store that did not go back', () => {
  test.each([0, 3, 40])('opens after a kill behind %i commits, with all of them', async commits => {
    await killedAfter(commits)
    const store = await made.open()
    expect(store.all('SELECT * FROM event')).toHaveLength(commits)
    store.close()
    expect(existsSync(`${made.path}-wal`)).toBe(false)
  })

  test('opens after somebody looked into the file of a killed daemon, which empties its log', async () => {
    await killedAfter(40)
    expect(runSql(made.path, 'SELECT count(*) FROM event; PRAGMA wal_checkpoint(TRUNCATE)')).toMatchObject({
      status: 0,
    })
    const store = await made.open()
    expect(store.all('SELECT * FROM event')).toHaveLength(40)
    store.close()
  })

  test('opens when the note is lost, unreadable, behind, or of another store', async () => {
    ;(await made.open()).close()
    for (const note of ['', 'x'.repeat(64), `${'1'.padEnd(16)}${'0'.repeat(16)} 999999`]) {
      writeFileSync(join(made.folder, 'owner.lock'), note)
      ;(await made.open()).close()
    }
    rmSync(join(made.folder, 'owner.lock'))
    ;(await made.open()).close()
  })

  test('may be provisioned anew where an older one was removed', async () => {
    ;(await made.open()).close()
    ;(await made.open()).close()
    rmSync(made.path)
    await provisionStore(made.path, TEST_SCHEMA, { clock: systemClock })
    ;(await made.open()).close()
  })
})
