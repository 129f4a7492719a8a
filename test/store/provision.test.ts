import {
  chmodSync,
  chownSync,
  copyFileSync,
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { systemClock } from '../../native/clock.js'
import { openStore } from '../../store/open.js'
import { provisionStore } from '../../store/provision.js'
import { SKIP_REASONS } from '../support/skips.js'
import {
  makeTestStore,
  openTestStore,
  pinAnotherDevice,
  runSql,
  TEST_SCHEMA,
  type TestStore,
} from '../support/test-store.js'
import { testWhen } from '../support/when.js'

const isRoot = process.geteuid?.() === 0
let store: TestStore

beforeEach(async () => {
  store = await makeTestStore()
})
afterEach(() => store.remove())

describe('provisioning', () => {
  test('makes one private file and leaves no temporary one', () => {
    expect(readdirSync(store.folder).sort()).toEqual(['owner.lock', 'test.db'])
    expect(lstatSync(store.path).mode & 0o7777).toBe(0o600)
  })

  test('refuses a name that is taken and leaves the file as it was', async () => {
    const before = readFileSync(store.path)
    await expect(provisionStore(store.path, TEST_SCHEMA, { clock: systemClock })).rejects.toMatchObject({
      code: 'storage',
    })
    expect(readFileSync(store.path).equals(before)).toBe(true)
  })

  test('refuses a table that is not strict', async () => {
    const loose = { ...TEST_SCHEMA, schemaSql: 'CREATE TABLE loose (a INTEGER);' }
    await expect(provisionStore(join(store.folder, 'b.db'), loose, { clock: systemClock })).rejects.toThrow(
      /STRICT/,
    )
    expect(readdirSync(store.folder).sort()).toEqual(['owner.lock', 'test.db'])
  })

  test('refuses while the directory is served', async () => {
    const open = await store.open()
    await expect(
      provisionStore(join(store.folder, 'b.db'), TEST_SCHEMA, { clock: systemClock }),
    ).rejects.toMatchObject({ code: 'another_instance' })
    open.close()
  })
})

describe('opening', () => {
  test('never creates a missing store', async () => {
    const path = join(store.folder, 'missing.db')
    await expect(openTestStore(path)).rejects.toMatchObject({ code: 'store_missing' })
    expect(readdirSync(store.folder).sort()).toEqual(['owner.lock', 'test.db'])
  })

  test('keeps the store id over a reopening', async () => {
    const first = await store.open()
    const id = first.storeId
    first.close()
    const second = await store.open()
    expect(second.storeId).toBe(id)
    second.close()
  })

  test('refuses a copy of the store, which would forget what was spent since', async () => {
    copyFileSync(store.path, `${store.path}.copy`)
    renameSync(`${store.path}.copy`, store.path)
    chmodSync(store.path, 0o600)
    await expect(store.open()).rejects.toMatchObject({ code: 'store_replaced' })
  })

  test('refuses a device number that alone changed, and names the adoption', async () => {
    pinAnotherDevice(store.path)
    await expect(store.open()).rejects.toThrow(/expected device 1, got \d+; .*chio store adopt/)
  })

  test.each([
    ['another application', { ...TEST_SCHEMA, applicationId: 7 }, /application_id 7/],
    ['another version', { ...TEST_SCHEMA, userVersion: 2 }, /user_version 2/],
    [
      'a text that differs by a blank',
      { ...TEST_SCHEMA, schemaSql: TEST_SCHEMA.schemaSql.replace('KEY,', 'KEY ,') },
      /text of table/,
    ],
  ])('refuses %s', async (_name, schema, sentence) => {
    await expect(openStore(store.path, schema, { clock: systemClock })).rejects.toThrow(sentence)
  })

  test('refuses an object that was added, and one that was taken away', async () => {
    runSql(store.path, 'CREATE INDEX added ON attempt (state)')
    await expect(store.open()).rejects.toThrow(/objects/)
    runSql(store.path, 'DROP INDEX added; DROP TRIGGER event_refuses_delete')
    await expect(store.open()).rejects.toThrow(/trigger event_refuses_delete/)
  })

  test('refuses a file that is no store', async () => {
    const path = join(store.folder, 'text.db')
    writeFileSync(
      path,
      'not a database, but longer than the header of one, so that it is read as such '.repeat(4),
      { mode: 0o600 },
    )
    await expect(openTestStore(path)).rejects.toMatchObject({ code: 'storage' })
    expect(readdirSync(store.folder)).not.toContain('text.db-wal')
  })
})

describe('custody of a store', () => {
  test.each([0o640, 0o604, 0o700, 0o400])('refuses mode %o', async mode => {
    chmodSync(store.path, mode)
    await expect(store.open()).rejects.toThrow(/mode 0600/)
  })

  test('refuses a second link', async () => {
    linkSync(store.path, join(store.folder, 'second'))
    await expect(store.open()).rejects.toThrow(/exactly one link, got 2/)
  })

  test('refuses a symbolic link', async () => {
    const path = join(store.folder, 'link.db')
    symlinkSync(store.path, path)
    await expect(openTestStore(path)).rejects.toThrow(/symbolic link/)
  })

  test.each([0o750, 0o705, 0o711])('refuses a folder of mode %o', async mode => {
    chmodSync(store.folder, mode)
    await expect(store.open()).rejects.toThrow(/mode 0700/)
  })

  test('refuses a folder that is a symbolic link', async () => {
    const other = mkdtempSync(join(tmpdir(), 'chio-store-link-'))
    symlinkSync(store.folder, join(other, 'link'))
    await expect(openTestStore(join(other, 'link', 'test.db'))).rejects.toThrow(/to be a directory/)
    rmSync(other, { recursive: true })
  })

  test('refuses a write-ahead log that others may read', async () => {
    writeFileSync(`${store.path}-wal`, '', { mode: 0o644 })
    await expect(store.open()).rejects.toThrow(/-wal refused: expected mode 0600/)
  })

  test('refuses a path that is relative or not normal', async () => {
    await expect(openTestStore('test.db')).rejects.toThrow(TypeError)
    await expect(openTestStore(`${store.folder}/../x.db`)).rejects.toThrow(TypeError)
  })

  testWhen(isRoot, SKIP_REASONS.needsRoot, 'refuses a file and a folder of another uid', async () => {
    chownSync(store.path, 61_190, 61_190)
    await expect(store.open()).rejects.toThrow(/owner uid 0, got 61190/)
    chownSync(store.path, 0, 0)
    chownSync(store.folder, 61_190, 61_190)
    await expect(store.open()).rejects.toThrow(/owner uid 0, got 61190/)
  })

  test('refuses a lock file that is a link or a folder', async () => {
    rmSync(join(store.folder, 'owner.lock'))
    symlinkSync('/dev/null', join(store.folder, 'owner.lock'))
    await expect(store.open()).rejects.toThrow(/owner lock .* refused/)
    rmSync(join(store.folder, 'owner.lock'))
    mkdirSync(join(store.folder, 'owner.lock'))
    await expect(store.open()).rejects.toThrow(/owner lock .* refused/)
  })
})
