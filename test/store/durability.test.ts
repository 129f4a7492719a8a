import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { systemClock } from '../../native/clock.js'
import { provisionStore } from '../../store/provision.js'
import { startChild } from '../support/compiled-child.js'
import { fullCount } from '../support/counts.js'
import { SKIP_REASONS } from '../support/skips.js'
import {
  CHILD_OPENS,
  makeTestStore,
  openTestStore,
  TEST_SCHEMA,
  type TestStore,
} from '../support/test-store.js'
import { describeWhen } from '../support/when.js'

let made: TestStore

beforeEach(async () => {
  made = await makeTestStore()
})
afterEach(() => made.remove())

const COMMITS = fullCount(150, 2_000)

/** System calls between the child's two marks, as strace names them, with the paths behind descriptors. */
async function syncsBetweenMarks(script: string): Promise<string[]> {
  const trace = join(made.folder, 'trace')
  const child = startChild(CHILD_OPENS + script, [made.path], {
    wrapper: ['strace', '-f', '-y', '-o', trace, '-e', 'trace=fsync,fdatasync,write'],
  })
  await child.ended()
  const lines = readFileSync(trace, 'utf8').split('\n')
  const begin = lines.findIndex(line => line.includes('\\"begin\\"'))
  const end = lines.findIndex(line => line.includes('\\"end\\"'))
  expect(begin).toBeGreaterThan(0)
  expect(end).toBeGreaterThan(begin)
  return lines.slice(begin + 1, end).filter(line => /f(data)?sync\(/.test(line))
}

describe('a commit', () => {
  test('costs exactly one sync, of the write-ahead log, from the first after opening on', async () => {
    const syncs = await syncsBetweenMarks(`
      const store = await open()
      say('begin')
      for (let number = 1; number <= 20; number += 1) {
        await store.transaction('append', tx => tx.changeOne("INSERT INTO event VALUES (?, 'x', NULL)", number))
        await new Promise(setImmediate)
      }
      say('end')`)
    expect(syncs).toHaveLength(20)
    expect(syncs.every(line => line.includes('test.db-wal>'))).toBe(true)
  })

  test('costs one sync also after a checkpoint, which has none of it inside a transaction', async () => {
    const syncs = await syncsBetweenMarks(`
      const store = await open()
      const commit = number =>
        store.transaction('append', tx => tx.changeOne("INSERT INTO event VALUES (?, 'x', NULL)", number))
      for (let number = 1; number <= 40; number += 1) await commit(number)
      await new Promise(resolve => setTimeout(resolve, 600))
      if (store.get('SELECT checkpoints AS n FROM store_state').n !== 1) throw new Error('no checkpoint happened')
      say('begin')
      await commit(41)
      await commit(42)
      say('end')`)
    expect(syncs).toHaveLength(2)
    expect(syncs.every(line => line.includes('test.db-wal>'))).toBe(true)
  })

  test.each([
    ['append:before_commit', 0],
    ['append:after_commit', 1],
  ])('survives a kill at %s as %i rows', async (cutpoint, rows) => {
    const child = startChild(
      `${CHILD_OPENS}
      const store = await open({ atCutpoint: name => { if (name === '${cutpoint}') process.kill(process.pid, 'SIGKILL') } })
      await store.transaction('append', tx => tx.changeOne("INSERT INTO event VALUES (1, 'x', NULL)"))`,
      [made.path],
    )
    expect(await child.ended()).toMatchObject({ signal: 'SIGKILL' })
    const store = await made.open()
    expect(store.all('SELECT * FROM event')).toHaveLength(rows)
    store.close()
  })
})

test('is given up only where an opening says so, and then no commit is synced', async () => {
  const made = await makeTestStore()
  try {
    for (const [durability, level] of [
      ['full', 2],
      ['none', 0],
    ] as const) {
      const store = await made.open({ durability })
      expect(store.get('PRAGMA synchronous')).toEqual({ synchronous: level })
      store.close()
    }
  } finally {
    made.remove()
  }
})

test('an opening syncs the store file before it notes its age: a power cut then takes neither from the other', async () => {
  const trace = join(made.folder, 'trace')
  const child = startChild(`${CHILD_OPENS}\nconst store = await open()\nstore.close()`, [made.path], {
    wrapper: ['strace', '-f', '-y', '-o', trace, '-e', 'trace=fdatasync,pwrite64'],
  })
  await child.ended()
  const calls = readFileSync(trace, 'utf8').split('\n')
  const synced = calls.findIndex(line => line.includes('fdatasync(') && line.includes('test.db>'))
  const noted = calls.findIndex(line => /pwrite64\(.*\.lock>, "[0-9a-f]{16} \d+ [1-9]/.test(line))
  expect(synced).toBeGreaterThan(0)
  expect(noted).toBeGreaterThan(synced)
})

/** The same disk, but from its tenth write or sync on it refuses: what a file system does that was remounted. */
describe.each([
  ['write', 'pwrite64', 'EROFS'],
  ['sync', 'fsync,fdatasync', 'EIO'],
])('a disk that begins to refuse every %s', (_what, call, errno) => {
  test('leaves what was acknowledged, and a sentence for the rest', async () => {
    const traced = ['-e', `trace=${call}`, '-e', `inject=${call}:error=${errno}:when=10+`]
    const child = startChild(
      `${CHILD_OPENS}
      const store = await open()
      for (let number = 1; number <= 40; number += 1) {
        try {
          await store.transaction('append', tx => tx.run("INSERT INTO event VALUES (?, 'x', NULL)", number))
          say({ number })
        } catch (error) {
          say({ code: error.code, outcome: error.outcome, sentence: error.message })
        }
      }
      say({ rows: store.all('SELECT number FROM event').length })
      process.kill(process.pid, 'SIGKILL')`,
      [made.path],
      { wrapper: ['strace', '-f', '-o', '/dev/null', '-P', `${made.path}-wal`, ...traced] },
    )
    const lines = (await child.ended()).lines as Record<string, unknown>[]
    const acknowledged = lines.filter(line => 'number' in line).length
    expect(acknowledged).toBeGreaterThan(0)
    expect(lines.find(line => 'code' in line)).toMatchObject({
      code: 'storage',
      outcome: 'unknown',
      sentence: expect.stringMatching(
        /commit of append failed: SQLITE_IOERR.*; look at the file system/,
      ) as unknown,
    })
    expect(lines.at(-1)).toEqual({ rows: acknowledged })
    const store = await made.open()
    // A commit whose sync failed may be on the disk all the same: that is why its outcome is said to be unknown.
    expect(store.all('SELECT number FROM event').length).toBeOneOf([acknowledged, acknowledged + 1])
    store.close()
  })
})

describe('checkpoints', () => {
  test('keep the write-ahead log small under steady load', async () => {
    const store = await made.open()
    for (let number = 1; number <= COMMITS * 4; number += 1) {
      await store.transaction('append', tx => tx.run("INSERT INTO event VALUES (?, 'x', NULL)", number))
      await turn()
    }
    expect(store.get<{ n: number }>('SELECT checkpoints AS n FROM store_state')?.n).toBeGreaterThan(0)
    expect(statSync(`${made.path}-wal`).size).toBeLessThan(8 * 1024 * 1024)
    expect(store.checkpointFault).toBeUndefined()
    store.close()
  })

  test('follow large values too', async () => {
    const store = await made.open()
    const bytes = new Uint8Array(512 * 1024)
    for (let id = 1; id <= 40; id += 1) {
      await store.transaction('retain', tx => tx.run('INSERT INTO retained VALUES (?, ?)', id, bytes))
      await turn()
    }
    expect(statSync(`${made.path}-wal`).size).toBeLessThan(8 * 1024 * 1024)
    store.close()
  })
})

describeWhen(process.geteuid?.() === 0, SKIP_REASONS.needsRoot, 'on a full disk', () => {
  let disk: string

  beforeEach(() => {
    disk = join(made.folder, 'disk')
    mkdirSync(disk, { mode: 0o700 })
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m,mode=0700', 'tmpfs', disk])
  })
  afterEach(() => {
    execFileSync('umount', [disk])
  })

  const fill = (): void => {
    execFileSync('sh', ['-c', `dd if=/dev/zero of=${disk}/filler bs=4k 2>/dev/null; true`])
  }

  test('provisioning is refused and leaves nothing', async () => {
    fill()
    const path = join(disk, 'test.db')
    await expect(provisionStore(path, TEST_SCHEMA, { clock: systemClock })).rejects.toMatchObject({
      code: 'storage',
    })
    expect(execFileSync('ls', [disk]).toString().trim().split('\n').sort()).toEqual(['filler', 'owner.lock'])
  })

  test('a transaction is refused whole, and the store serves again once there is room', async () => {
    const path = join(disk, 'test.db')
    await provisionStore(path, TEST_SCHEMA, { clock: systemClock })
    const store = await openTestStore(path)
    await store.transaction('append', tx => tx.run("INSERT INTO event VALUES (1, 'x', NULL)"))
    fill()
    const big = store.transaction('retain', tx => {
      tx.run("INSERT INTO event VALUES (2, 'y', NULL)")
      tx.run('INSERT INTO retained VALUES (1, ?)', new Uint8Array(200_000))
    })
    await expect(big).rejects.toMatchObject({ code: 'storage' })
    expect(store.all('SELECT number FROM event')).toEqual([{ number: 1 }])
    rmSync(join(disk, 'filler'))
    await store.transaction('append', tx => tx.run("INSERT INTO event VALUES (3, 'z', NULL)"))
    store.close()
    const again = await openTestStore(path)
    expect(again.all('SELECT number FROM event')).toEqual([{ number: 1 }, { number: 3 }])
    again.close()
  })

  test('opening is refused, and history is as it was once there is room', async () => {
    const path = join(disk, 'test.db')
    await provisionStore(path, TEST_SCHEMA, { clock: systemClock })
    fill()
    await expect(openTestStore(path)).rejects.toMatchObject({ code: 'storage' })
    rmSync(join(disk, 'filler'))
    const store = await openTestStore(path)
    store.close()
  })
})
