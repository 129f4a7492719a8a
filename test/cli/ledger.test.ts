// chio ledger: an owner looks at a ledger, extends it and accepts a clock, with real commands beside a real executor.
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { packageRoot } from '../../native/paths.js'
import { pinAnotherDevice } from '../support/test-store.js'
import { temporaryFolder } from '../support/temporary-folder.js'

let state: string
const at = (...path: string[]): string => join(state, ...path)

function run(program: string, ...args: string[]) {
  const { status, stderr, stdout } = spawnSync(
    process.execPath,
    [join(packageRoot(), 'dist', 'bin', `${program}.js`), ...args],
    { encoding: 'utf8' },
  )
  return { status, stderr, stdout }
}

const ledger = (verb: string, ...args: string[]) =>
  run('chio', 'ledger', verb, at('ledger.db'), '--executor', at('executor.json'), ...args)
const key = () => ['--key', at('executor', 'executor.key')]
const made = (file: string): string => join(state, '..', 'executor', file)
const note = (verb: string, ...args: string[]) => run('review-note', verb, ...args, '--state', state)

beforeAll(() => {
  state = join(temporaryFolder('chio-ledger-'), 'state')
  expect(note('init')).toMatchObject({ status: 0 })
  writeFileSync(at('note.txt'), 'seen\n')
  note('authorize', at('note.txt'), '--operation', 'one')
  expect(note('execute', 'one')).toMatchObject({ status: 0 })
})

test('init makes key, pin and ledger in a new folder, and nothing where anything stands', () => {
  const folder = join(state, '..', 'executor')
  const args = ['ledger', 'init', folder, '--id', 'notes-executor', '--capacity', '2']
  const made = run('chio', ...args, '--json')
  const { executor } = JSON.parse(made.stdout) as { executor: { public_key: string } }
  expect(executor).toEqual({
    executor_id: 'notes-executor',
    key_epoch: 1,
    public_key: expect.stringMatching(/^[0-9a-f]{64}$/) as string,
  })
  const pin = readFileSync(join(folder, 'executor.json'), 'utf8')
  expect(JSON.parse(pin)).toEqual(executor)
  const shown = run(
    'chio',
    'ledger',
    'show',
    join(folder, 'ledger.db'),
    '--executor',
    join(folder, 'executor.json'),
  )
  expect(shown.stdout).toBe('claims    0 of 2, in 1 segment\nreports   0\n')
  const again = run('chio', ...args)
  expect(again.stderr).toMatch(/refused: expected mkdir to be permitted and possible, got EEXIST/)
  expect(again.status).toBe(1)
  expect(readFileSync(join(folder, 'executor.json'), 'utf8')).toBe(pin)
  expect(made.stdout + made.stderr).not.toContain(readFileSync(join(folder, 'executor.key')).toString('hex'))
})

test('adopt accepts a disk that was renumbered, signed and kept, and nothing that has not changed', () => {
  const own = ['--executor', made('executor.json'), '--key', made('executor.key')]
  const adopt = (...args: string[]) => run('chio', 'ledger', 'adopt', made('ledger.db'), ...args)
  const unchanged = adopt(...own)
  expect(unchanged.stderr).toMatch(/adoption refused: expected another device number, got the pinned one/)
  expect(unchanged.status).toBe(1)
  pinAnotherDevice(made('ledger.db'))
  const shown = run('chio', 'ledger', 'show', made('ledger.db'), ...own.slice(0, 2))
  expect(shown.stderr).toMatch(/next: .*for an executor chio ledger adopt/)
  expect(adopt(...own)).toMatchObject({
    status: 0,
    stdout: expect.stringMatching(/^device [0-9]+ accepted in the place of 1\n$/) as string,
  })
  expect(run('chio', 'ledger', 'show', made('ledger.db'), ...own.slice(0, 2)).status).toBe(0)
})

test('show judges the whole ledger and says how much room is left', () => {
  expect(ledger('show').stdout).toBe('claims    1 of 4, in 1 segment\nreports   1\n')
  expect(JSON.parse(ledger('show', '--json').stdout)).toEqual({
    schema: 'chio.ledger.v1',
    capacity: 4,
    claims: 1,
    ledger: at('ledger.db'),
    reports: 1,
    segments: 1,
  })
})

test('extend signs a segment, and what was retained comes back as it was', () => {
  const before = note('execute', 'one').stdout
  expect(ledger('extend', '--by', '8', ...key())).toMatchObject({
    status: 0,
    stdout: 'segment 2 signed: room for 8 more\nclaims    1 of 12, in 2 segments\nreports   1\n',
  })
  expect(note('execute', 'one').stdout).toBe(before)
})

test('accept-clock is signed and kept', () => {
  const accepted = JSON.parse(ledger('accept-clock', ...key(), '--json').stdout) as {
    correction: { from_unix_ms: number; to_unix_ms: number; schema: string }
  }
  expect(accepted.correction.schema).toBe('chio.caller-executor-clock-correction.v1')
  expect(accepted.correction.to_unix_ms).toBeGreaterThanOrEqual(accepted.correction.from_unix_ms)
  expect(ledger('show').status).toBe(0)
})

describe('refused, with nothing changed:', () => {
  const refused = (ended: ReturnType<typeof run>, code: string, sentence: RegExp) => {
    expect(ended.stderr).toMatch(sentence)
    expect(ended).toMatchObject({ stdout: '' })
    expect(ended.stderr).toContain(`code ${code}`)
    expect(ledger('show').stdout).toContain('claims    1 of 12, in 2 segments')
  }

  test.each(['0', '65', 'many', '1.5'])('a segment of %s', by => {
    refused(ledger('extend', '--by', by, ...key()), 'usage', /expected a whole number from 1 to 64, got "/)
  })

  test('the key of somebody else', () => {
    const other = at('host', 'keys', 'kernel.key')
    refused(
      ledger('extend', '--by', '1', '--key', other),
      'executor_mismatch',
      /executor refused: expected the key/,
    )
    refused(ledger('accept-clock', '--key', other), 'executor_mismatch', /executor refused: expected the key/)
  })

  test('another executor than the one that it was made for', () => {
    const pin = JSON.parse(readFileSync(at('executor.json'), 'utf8')) as { key_epoch: number }
    const renamed = at('executor-2.json')
    writeFileSync(renamed, JSON.stringify({ ...pin, key_epoch: pin.key_epoch + 1 }))
    refused(
      run('chio', 'ledger', 'show', at('ledger.db'), '--executor', renamed),
      'executor_mismatch',
      /executor refused: expected executor .* of key epoch/,
    )
  })

  test('a ledger that is not there: it is not made, and nobody is advised to make it', () => {
    renameSync(at('ledger.db'), at('ledger.away'))
    try {
      const ended = ledger('show')
      expect(ended.stderr).toContain('code store_missing')
      expect(ended.stderr).toMatch(/next: .*an executor's ledger is never made anew/)
      expect(existsSync(at('ledger.db'))).toBe(false)
    } finally {
      renameSync(at('ledger.away'), at('ledger.db'))
    }
  })
})
