// The review-note example: what a note is, what each command keeps, and what each refuses without changing anything; what
// is left of it by kill -9 at moments drawn from each boundary; and the whole exercise as its program. Every command opens
// the original stores again.
import { spawnSync } from 'node:child_process'
import {
  appendFileSync,
  copyFileSync,
  existsSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { CRASH_BOUNDARIES } from '../../examples/review-note/crash-boundaries.js'
import { crashRounds } from '../../examples/review-note/crash-rounds.js'
import { systemClock } from '../../native/clock.js'
import { packageRoot } from '../../native/paths.js'
import { admitPublicKey } from '../../protocol/keys.js'
import { verifyReceiptLine } from '../../protocol/receipt-line.js'
import { fullCount, isFullRun } from '../support/counts.js'
import { codeOf } from '../support/executor-world.js'
import { ReviewNote, SAMPLE_NOTE } from '../support/review-note.js'
import { SKIP_REASONS } from '../support/skips.js'
import { temporaryFolder } from '../support/temporary-folder.js'
import { testWhen } from '../support/when.js'

const MINUTE_MS = 60_000
/** Lines that a test tore or changed, as they were. */
const NEWLINE = '\n'

interface Refusal {
  readonly code: string
  readonly message: string
  readonly outcome: string
}

const refusal = (act: Promise<unknown>): Promise<Refusal> =>
  act.then(
    () => ({ code: 'none', message: '', outcome: '' }),
    (error: unknown) => error as Refusal,
  )

/** It is refused by this code, and nothing of the requests, the journal and the pins is changed. */
async function refused(at: ReviewNote, act: () => Promise<unknown>, code: string): Promise<string> {
  const before = at.snapshot()
  const { code: found, message } = await refusal(act())
  expect(found).toBe(code)
  expect(at.snapshot()).toBe(before)
  return message
}

const inPackage = (...path: readonly string[]): string => join(packageRoot(), ...path)

describe('review-note', () => {
  let world: ReviewNote
  beforeAll(async () => {
    world = await ReviewNote.begin(16)
  })
  afterAll(() => world.end())

  test('takes notes of 1 to 4,096 bytes of UTF-8, counted in bytes, and no other', async () => {
    for (const note of ['', 'a'.repeat(4_097), 'é'.repeat(2_049), Buffer.from([0x61, 0xff])]) {
      await refused(world, () => world.authorize('other', note), 'invalid_request')
    }
    await world.authorize('shortest', 'a')
    await world.authorize('longest', 'é'.repeat(2_048))
  })

  test('keeps each file on its way, receipts on a single line, and no journal before an append', async () => {
    await world.authorize('t2-1')
    const files = world.files('t2-1')
    expect(existsSync(world.journal)).toBe(false)
    await world.execute('t2-1')
    expect(await world.report('t2-1')).toMatchObject({
      note: SAMPLE_NOTE,
      sha256: '1237fdc278c34d32ab1e023f63d4b5e97922b13d18328e7f13783bb4d337e75f',
    })
    const pinned = readFileSync(world.act.place.host.kernelPublicKey, 'utf8')
    expect(pinned).toMatch(/^[0-9a-f]{64}\n$/)
    for (const path of [files.reservationReceipt, files.completedReceipt]) {
      const [line = '', rest] = readFileSync(path, 'utf8').split('\n')
      verifyReceiptLine(Buffer.from(line, 'utf8'), 1, admitPublicKey(pinned.trim(), 'kernel.pub'))
      expect(rest).toBe('')
    }
    expect(readFileSync(files.completedReceipt, 'utf8')).toContain('"attested_by":"executor"')
  })

  test('refuses a changed text under a retained key, and init over what stands', async () => {
    await world.authorize('t3-1')
    await refused(world, () => world.authorize('t3-1', 'another'), 'request_binding_mismatch')
    expect(world.run('init')).toMatchObject({ status: 1, stdout: '' })
    expect(await codeOf(world.authorize('..', 'a'))).toBe('usage')
  })

  test('takes a folder in the place of a note with a sentence, and leaves nothing of the operation', () => {
    const args = [
      inPackage('dist', 'bin', 'review-note.js'),
      'authorize',
      world.folder,
      '--operation',
      'folder',
    ]
    const told = spawnSync(process.execPath, [...args, '--state', world.act.place.state], {
      encoding: 'utf8',
    })
    expect(told.stderr).toMatch(
      /^review-note: file refused: expected read to be possible, got EISDIR\n.*code storage/,
    )
    expect(told.status).toBe(1)
    expect(existsSync(world.files('folder').request)).toBe(false)
  })

  test('refuses to execute what is not authorized, and to report what is not executed', async () => {
    const lines = world.lines().length
    await refused(world, () => world.execute('t4-1'), 'invalid_request')
    await world.authorize('t4-1')
    await refused(world, () => world.report('t4-1'), 'invalid_request')
    expect(world.lines()).toHaveLength(lines)
  })

  test('expects what the host recorded, whatever an authorization says', async () => {
    const lines = world.lines().length
    await world.authorize('t5-1')
    await world.authorize('t5-2', 'another')
    copyFileSync(world.files('t5-2').authorization, world.files('t5-1').authorization)
    await refused(world, () => world.execute('t5-1'), 'caller_delivery_binding')
    const { request } = world.files('t5-2')
    writeFileSync(request, readFileSync(request, 'utf8').replace('another', 'changed'))
    await refused(world, () => world.execute('t5-2'), 'invalid_request')
    expect(world.lines()).toHaveLength(lines)
  })

  test('refuses a ledger that is missing, replaced or of another epoch, and makes none', async () => {
    await world.authorize('t7-1')
    const { executorPin, ledger } = world.act.place
    const aside = `${ledger}.aside`
    renameSync(ledger, aside)
    await refused(world, () => world.execute('t7-1'), 'store_missing')
    expect(existsSync(ledger)).toBe(false)
    copyFileSync(aside, ledger)
    await refused(world, () => world.execute('t7-1'), 'store_replaced')
    rmSync(ledger)
    renameSync(aside, ledger)
    const pin = readFileSync(executorPin, 'utf8')
    writeFileSync(executorPin, pin.replace('"key_epoch":1', '"key_epoch":2'))
    await refused(world, () => world.execute('t7-1'), 'executor_mismatch')
    writeFileSync(executorPin, pin)
    await world.execute('t7-1')
    writeFileSync(executorPin, pin.replace('"key_epoch":1', '"key_epoch":2'))
    await refused(world, () => world.report('t7-1'), 'executor_changed')
    writeFileSync(executorPin, pin)
    expect(await world.report('t7-1')).toMatchObject({ note: SAMPLE_NOTE })
  })

  test('refuses a changed report, and shows a note without its control characters', async () => {
    await world.authorize('t10-1', 'red \u001b[31m\u202enote')
    await world.execute('t10-1')
    const { completedReceipt, report, result } = world.files('t10-1')
    const signed = readFileSync(report, 'utf8')
    writeFileSync(report, signed.replace('note"', 'nota"'))
    await refused(world, () => world.report('t10-1'), 'caller_delivery_signature')
    writeFileSync(report, signed)
    expect(world.run('report', 't10-1')).toMatchObject({
      status: 0,
      stdout: 'Completed: original report reconciled.\n\nred \\x1b[31m\\u{202e}note\n',
    })
    writeFileSync(result, readFileSync(result, 'utf8').replace('red', 'rad'))
    await refused(world, () => world.report('t10-1'), 'conflict')
    expect(existsSync(completedReceipt)).toBe(true)
  })
})

describe('a journal, and a window', () => {
  let world: ReviewNote
  beforeAll(async () => {
    world = await ReviewNote.begin(16)
  })
  afterAll(() => world.end())

  test('finds a torn line at the next append, by offset and operation, and spends no claim on it', async () => {
    const { operationId } = await world.authorize('t8-1')
    await world.execute('t8-1')
    const whole = readFileSync(world.journal, 'utf8')
    const torn = whole.slice(0, 90).replace(operationId, 'a'.repeat(64))
    appendFileSync(world.journal, torn)
    await world.authorize('t8-2', 'another')
    const said = await refused(world, () => world.execute('t8-2'), 'storage')
    expect(said).toContain(`at byte ${Buffer.byteLength(whole)}, of operation ${'a'.repeat(64)}`)
    // What was appended before is answered from the ledger all the same.
    await world.execute('t8-1')
    writeFileSync(world.journal, whole)
    await world.execute('t8-2')
    expect(world.lines()).toHaveLength(2)
  })

  test('says of a torn line that may be its own that the outcome is unknown', async () => {
    const { operationId } = await world.authorize('t9-1')
    const whole = readFileSync(world.journal)
    writeFileSync(world.journal, `{"operation_id":"${operationId.slice(0, 9)}`, { mode: 0o600 })
    expect(await refusal(world.execute('t9-1'))).toMatchObject({ code: 'storage', outcome: 'unknown' })
    writeFileSync(world.journal, `no note${NEWLINE}`, { mode: 0o600 })
    expect(await refusal(world.execute('t9-1'))).toMatchObject({ code: 'storage', outcome: 'not_started' })
    writeFileSync(world.journal, whole)
  })

  // Last: the ledger has seen a later time then.
  test('begins nothing after the window, and repeats then what was retained', async () => {
    const lines = world.lines().length
    await world.authorize('t6-1')
    await world.authorize('t6-2')
    const first = await world.execute('t6-1')
    const later = {
      bootNs: () => systemClock.bootNs() + BigInt(2 * MINUTE_MS) * 1_000_000n,
      unixMs: () => systemClock.unixMs() + 2 * MINUTE_MS,
    }
    const act = { ...world.act, clock: later }
    await refused(world, () => world.execute('t6-2', act), 'caller_delivery_expired')
    expect(await world.execute('t6-1', act)).toEqual(first)
    expect(world.lines()).toHaveLength(lines + 1)
  })
})

describe('a grant that is larger than the ledger', () => {
  let world: ReviewNote
  beforeAll(async () => {
    world = await ReviewNote.begin(5)
    for (const key of ['1', '2', '3', '4', '5']) await world.authorize(key, `note ${key}\n`)
  })
  afterAll(() => world.end())

  test('is exhausted by the next authorize, whose refusal is kept as it was first said', async () => {
    await expect(world.authorize('6')).rejects.toMatchObject({
      code: 'grant_exhausted',
      message: expect.stringMatching(/^reservation refused: /) as string,
    })
    const { authorization, nonce, reservationReceipt } = world.files('6')
    const kept = readFileSync(reservationReceipt)
    expect(await codeOf(world.authorize('6'))).toBe('grant_exhausted')
    expect(readFileSync(reservationReceipt)).toEqual(kept)
    expect([authorization, nonce].map(path => existsSync(path))).toEqual([false, false])
  })

  test('meets the capacity of the ledger at the fifth execute, in other words', async () => {
    for (const key of ['1', '2', '3', '4']) await world.execute(key)
    const before = world.snapshot()
    await expect(world.execute('5')).rejects.toMatchObject({
      code: 'executor_capacity',
      message: expect.stringMatching(/got 4 of 4 claimed/) as string,
    })
    expect(world.snapshot()).toBe(before)
    expect(world.lines()).toHaveLength(4)
  })
})

test.each(CRASH_BOUNDARIES)(
  'killed at $boundary, at most one note is appended, none is invented, and it ends as $end',
  async boundary => {
    const rounds = fullCount(1, 50)
    const folder = temporaryFolder('chio-review-crash-')
    const row = await crashRounds(boundary, {
      folder,
      program: inPackage('dist', 'bin', 'interrupted.js'),
      rounds,
    })
    expect(row.misses).toEqual([])
    expect(row).toMatchObject({ killed: rounds, [boundary.end]: rounds })
    expect(row.effects).toBeLessThanOrEqual(rounds)
  },
)

function exercise(chio: string) {
  const output = temporaryFolder('chio-exercise-')
  const program = inPackage('examples', 'review-note', 'exercise')
  const { status, stderr, stdout } = spawnSync(
    program,
    ['--chio', chio, '--output', output, '--rounds', '0'],
    {
      encoding: 'utf8',
    },
  )
  if (stdout === '') throw new Error(stderr)
  expect(readFileSync(join(output, 'exercise.json'), 'utf8')).toBe(stdout)
  const result = JSON.parse(stdout) as { kept: boolean; steps: { step: string; missed: string | null }[] }
  return { ...result, status, missed: result.steps.filter(({ missed }) => missed !== null) }
}

testWhen(isFullRun, SKIP_REASONS.needsFullRun, 'the exercise keeps every step', () => {
  expect(exercise(inPackage('dist', 'bin', 'chio.js'))).toMatchObject({ kept: true, missed: [], status: 0 })
})

testWhen(isFullRun, SKIP_REASONS.needsFullRun, 'the exercise ends with 1 when one step is missed', () => {
  expect(exercise('/bin/true')).toMatchObject({
    kept: false,
    missed: [{ step: 'the receipt verifies under the pinned kernel key' }, { step: 'and under no other' }],
    status: 1,
  })
})
