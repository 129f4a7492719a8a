// Owns the stores that tests make: a private folder, a small schema, and what a second process does with the file.
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { lstatSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '../../native/clock.js'
import { type OpenOptions, openStore } from '../../store/open.js'
import { provisionStore } from '../../store/provision.js'
import { appendOnly, type StoreSchema } from '../../store/schema.js'
import type { Store } from '../../store/store.js'

export const TEST_SCHEMA: StoreSchema = {
  applicationId: 0x63686974,
  userVersion: 1,
  schemaSql: `
CREATE TABLE attempt (id TEXT PRIMARY KEY, state TEXT NOT NULL, version INTEGER NOT NULL CHECK (version > 0)) STRICT;
CREATE TABLE retained (id INTEGER PRIMARY KEY, bytes BLOB NOT NULL) STRICT;
CREATE TABLE event (number INTEGER PRIMARY KEY, text TEXT NOT NULL, attempt_id TEXT REFERENCES attempt (id)) STRICT;
${appendOnly('event')}`,
}

export interface TestStore {
  readonly folder: string
  readonly path: string
  open(options?: Partial<OpenOptions>): Promise<Store>
  remove(): void
}

/** A provisioned store in a new private folder. */
export async function makeTestStore(): Promise<TestStore> {
  const folder = mkdtempSync(join(tmpdir(), 'chio-store-'))
  const path = join(folder, 'test.db')
  await provisionStore(path, TEST_SCHEMA, { clock: systemClock })
  return {
    folder,
    path,
    open: options => openTestStore(path, options),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  }
}

export function openTestStore(path: string, options: Partial<OpenOptions> = {}): Promise<Store> {
  return openStore(path, TEST_SCHEMA, { clock: systemClock, ...options })
}

/** Runs SQL on the file from a process of its own, as an operator with a shell would. */
export function runSql(path: string, sql: string): { status: number | null; stderr: string } {
  const program =
    'import sqlite3, sys\nc = sqlite3.connect(sys.argv[1], isolation_level=None)\nc.executescript(sys.argv[2])'
  const ended = spawnSync('/usr/bin/python3', ['-c', program, path, sql], { timeout: 10_000 })
  return { status: ended.status, stderr: ended.stderr.toString() }
}

/** As if the disk had had another number when the store was last pinned. */
export function pinAnotherDevice(path: string): void {
  const inode = lstatSync(path, { bigint: true }).ino
  runSql(
    path,
    `INSERT INTO store_pin SELECT max(sequence) + 1, store_id, '1', '${inode}', 1, NULL FROM store_pin`,
  )
}

/** What SQLite says to each statement, or an empty text. */
export function saidTo(path: string, statements: readonly string[]): string[] {
  const program = [
    'import json, sqlite3, sys',
    'c = sqlite3.connect(sys.argv[1], isolation_level=None)',
    'def said(sql):',
    '  try: c.execute(sql)',
    '  except sqlite3.Error as error: return str(error)',
    "  return ''",
    'print(json.dumps([said(sql) for sql in json.loads(sys.argv[2])]))',
  ].join('\n')
  const ended = spawnSync('/usr/bin/python3', ['-c', program, path, JSON.stringify(statements)])
  return JSON.parse(ended.stdout.toString()) as string[]
}

/** Writes past every trigger, as whoever has the file may, and leaves the schema as it was. */
export function tamper(path: string, sql: string): void {
  const program = [
    'import sqlite3, sys',
    'c = sqlite3.connect(sys.argv[1], isolation_level=None)',
    'kept = c.execute("SELECT name, sql FROM sqlite_schema WHERE type = \'trigger\'").fetchall()',
    "for name, _ in kept: c.execute(f'DROP TRIGGER {name}')",
    'c.executescript(sys.argv[2])',
    'for _, text in kept: c.execute(text)',
  ].join('\n')
  const { status, stderr } = spawnSync('/usr/bin/python3', ['-c', program, path, sql], { timeout: 10_000 })
  if (status !== 0) throw new Error(stderr.toString())
}

/** Another process takes the write lock and keeps it until it is let go. @param wrapper leads to where the file is. */
export async function holdStore(
  path: string,
  wrapper: readonly string[] = [],
): Promise<{ letGo(): Promise<void> }> {
  const program = [
    'import sqlite3, sys',
    'c = sqlite3.connect(sys.argv[1], isolation_level=None)',
    'c.execute("BEGIN EXCLUSIVE")',
    'print("held", flush=True)',
    'sys.stdin.read()',
    'c.execute("ROLLBACK")',
  ].join('\n')
  const [command, ...args] = [...wrapper, '/usr/bin/python3', '-c', program, path]
  const holder = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] })
  const exit = once(holder, 'exit')
  await once(holder.stdout, 'data')
  return {
    async letGo() {
      holder.stdin.end()
      await exit
    },
  }
}

/** Opens the store at `args[0]` in a child process with the schema of this file. */
export const CHILD_OPENS = `
const { systemClock } = await compiled('native/clock')
const { openStore } = await compiled('store/open')
const schema = ${JSON.stringify(TEST_SCHEMA)}
const open = options => openStore(args[0], schema, { clock: systemClock, ...options })
`
