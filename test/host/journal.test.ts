// The private journal: frames cannot be read without its key, open only in their own place, and are on disk with
// private modes before anything goes on.
import { randomBytes } from 'node:crypto'
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { Journal, openJournalFrame } from '../../host/journal.js'
import { codeOf } from '../support/descriptors.js'

const ATTEMPT = `broker-attempt-${'a'.repeat(64)}`
const CONTENT = Buffer.from('{"title":"what nobody else may read","body":[123,34,116]}')

let runs: string
let key: Buffer
let earlierMask: number

beforeEach(() => {
  runs = mkdtempSync(join(tmpdir(), 'chio-journal-'))
  key = randomBytes(32)
  earlierMask = process.umask(0)
})
afterEach(() => {
  process.umask(earlierMask)
  rmSync(runs, { recursive: true, force: true })
})

async function sealed(name: 'request.frame' | 'response.frame' = 'request.frame'): Promise<Buffer> {
  const journal = await Journal.open(runs, ATTEMPT, key)
  await journal.retainFrame(name, CONTENT)
  return readFileSync(join(journal.directory, name))
}

const opened = (bytes: Uint8Array, attemptId = ATTEMPT, name = 'request.frame', journalKey = key) =>
  openJournalFrame(bytes, journalKey, attemptId, name)

describe('a journal', () => {
  test('holds no byte of a frame in clear, and opens to the exact frame', async () => {
    const bytes = await sealed()
    expect(bytes.includes('title')).toBe(false)
    expect(bytes.includes(CONTENT.subarray(0, 8))).toBe(false)
    expect(bytes.toString('latin1')).not.toContain(CONTENT.toString('base64').slice(0, 12))
    expect(Buffer.compare(opened(bytes), CONTENT)).toBe(0)
  })

  test('opens a frame with its key alone, in its attempt alone, under its name alone', async () => {
    const bytes = await sealed()
    const wrong: [string, () => unknown][] = [
      ['another key', () => opened(bytes, ATTEMPT, 'request.frame', randomBytes(32))],
      ['another attempt', () => opened(bytes, `broker-attempt-${'b'.repeat(64)}`)],
      ['another name', () => opened(bytes, ATTEMPT, 'response.frame')],
    ]
    for (const [what, open] of wrong) expect([what, await codeOf(open)]).toEqual([what, 'custody'])
  })

  test('refuses a frame of which any byte was changed, cut or added', async () => {
    const bytes = await sealed()
    for (let at = 0; at < bytes.length; at++) {
      const changed = Buffer.from(bytes)
      changed[at] = (changed[at] ?? 0) ^ 1
      expect([at, await codeOf(() => opened(changed))]).toEqual([at, 'custody'])
    }
    for (const length of [0, 20, 21, 33, 48, bytes.length - 1]) {
      expect([length, await codeOf(() => opened(bytes.subarray(0, length)))]).toEqual([length, 'custody'])
    }
    expect(await codeOf(() => opened(Buffer.concat([bytes, Buffer.from('x')])))).toBe('custody')
  })

  test('never writes the same bytes twice for the same frame', async () => {
    const [first, second] = [await sealed(), await sealed()]
    expect(first.length).toBe(second.length)
    expect(first.equals(second)).toBe(false)
  })

  test('keeps folders 0700 and files 0600, whatever the umask lets through', async () => {
    await sealed()
    const journal = await Journal.open(runs, ATTEMPT, key)
    await journal.retainFrame('response.frame', CONTENT)
    await journal.retainDocument('receipt.json', Buffer.from('{}'))
    await journal.retainDocument('outcome.json', { schema: 'chio.host-outcome.v1' })
    const names = readdirSync(journal.directory).sort()
    expect(names).toEqual(['outcome.json', 'receipt.json', 'request.frame', 'response.frame'])
    for (const name of names) expect(statSync(join(journal.directory, name)).mode & 0o7777).toBe(0o600)
    expect(statSync(journal.directory).mode & 0o7777).toBe(0o700)
  })

  test('retains documents in clear, canonical and with a final newline', async () => {
    const journal = await Journal.open(runs, ATTEMPT, key)
    await journal.retainDocument('outcome.json', { schema: 's', attemptId: ATTEMPT })
    expect(readFileSync(join(journal.directory, 'outcome.json'), 'utf8')).toBe(
      `{"attemptId":"${ATTEMPT}","schema":"s"}\n`,
    )
  })

  test('refuses a file or a link in the place of its folder', async () => {
    writeFileSync(join(runs, ATTEMPT), 'a file in the place of the folder')
    expect(await codeOf(() => Journal.open(runs, ATTEMPT, key))).toBe('custody')
    rmSync(join(runs, ATTEMPT))
    symlinkSync(tmpdir(), join(runs, ATTEMPT))
    expect(await codeOf(() => Journal.open(runs, ATTEMPT, key))).toBe('custody')
  })

  test('says by a code of its own that nothing could be kept', async () => {
    expect(await codeOf(() => Journal.open(join(runs, 'absent'), ATTEMPT, key))).toBe('storage')
    const journal = await Journal.open(runs, ATTEMPT, key)
    rmSync(journal.directory, { recursive: true })
    expect(await codeOf(() => journal.retainFrame('request.frame', CONTENT))).toBe('storage')
    expect(await codeOf(() => journal.retainDocument('receipt.json', {}))).toBe('storage')
  })

  test('refuses a folder that another may enter', async () => {
    mkdirSync(join(runs, ATTEMPT), { mode: 0o755 })
    expect(await codeOf(() => Journal.open(runs, ATTEMPT, key))).toBe('custody')
  })

  test.each(['..', '.', '', 'a/b', '../other', 'a\0b'])(
    'never leaves its runs for an attempt named %j',
    async id => {
      expect(await codeOf(() => Journal.open(runs, id, key))).toBe('custody')
      expect(readdirSync(runs)).toEqual([])
    },
  )
})
