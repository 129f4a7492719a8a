// The fuzz program as a user runs it: every target for a moment, its table, its document, its exit codes.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { packageRoot } from '../../native/paths.js'
import { InputPool } from '../../selftest/fuzz/input-pool.js'
import { Random } from '../../selftest/fuzz/random.js'
import { runTarget } from '../../selftest/fuzz/fuzz-run.js'
import { FuzzFinding, type FuzzTarget } from '../../selftest/fuzz/target.js'
import { FUZZ_TARGET_NAMES } from '../../selftest/fuzz/targets.js'
import type { Clock } from '../../protocol/clock.js'
import { fullCount } from '../support/counts.js'

/** Ten minutes each are `npm run fuzz -- all 600`. */
const SECONDS = fullCount(300, 30_000) / 1_000
/** A machine under load gives each thread its turn late. */
const PATIENCE_MS = 120_000 + FUZZ_TARGET_NAMES.length * SECONDS * 2_000

async function fuzz(...args: string[]): Promise<{ status: number | null; out: string; error: string }> {
  const program = join(packageRoot(), 'dist', 'cli', 'fuzz.js')
  const child = spawn(process.execPath, [program, ...args], { env: { PATH: process.env['PATH'] } })
  let [out, error] = ['', '']
  child.stdout.on('data', (text: Buffer) => (out += text.toString()))
  child.stderr.on('data', (text: Buffer) => (error += text.toString()))
  const [status] = (await once(child, 'close')) as [number | null]
  return { status, out, error }
}

interface Row {
  readonly target: string
  readonly inputs: number
  readonly accepted: number
  readonly findings: readonly unknown[]
}

describe('npm run fuzz', () => {
  test(`breaks no promise in ${SECONDS} s of each target`, { timeout: PATIENCE_MS }, async () => {
    const { status, out, error } = await fuzz('all', String(SECONDS), '--seed', '7', '--json')
    expect(error).toBe('')
    const { schema, rows } = JSON.parse(out) as { schema: string; rows: Row[] }
    expect([status, schema, rows.flatMap(({ findings }) => findings)]).toEqual([0, 'chio.fuzz.v1', []])
    expect(rows.map(({ target }) => target)).toEqual(FUZZ_TARGET_NAMES)
    // A target that takes nothing, or tries nothing, would break no promise either.
    for (const { target, inputs, accepted } of rows) {
      expect({ target, tried: inputs > 10, took: accepted > 0 }).toEqual({ target, tried: true, took: true })
    }
  })

  test.each([[['nothing', '1']], [['json', '1', '--seed', '-1']]])(
    'says how it is used when it is given %j',
    async args => {
      const { status, error } = await fuzz(...args)
      expect(status).toBe(2)
      expect(error).toContain('TARGET SECONDS')
    },
  )
})

/** A clock that passes a millisecond at each look, so that a run has the same length on every machine. */
function countingClock(): Clock {
  let looks = 0n
  return { unixMs: () => 0, bootNs: () => (looks += 1n) * 1_000_000n }
}

describe('a run', () => {
  /** Breaks its promise for every input that holds an x behind a y. */
  const target: FuzzTarget = {
    name: 'broken',
    reads: 'letters',
    maximumInputBytes: 100,
    seeds: () => [Buffer.from('aaaaaaaaay aaaa')],
    mutate: (base, _other, random) =>
      Buffer.concat([base.subarray(0, 60), Buffer.from(random.pick(['x', 'y', 'a']))]),
    check(input) {
      const text = Buffer.from(input).toString()
      if (/y.*x/.test(text)) throw new FuzzFinding('an x came behind a y')
      return { word: 'accepted', signal: text.slice(-1) }
    },
  }

  test('reports a broken promise once, with the smallest input that breaks it', async () => {
    const result = await runTarget(target, { seed: 1, clock: countingClock(), milliseconds: 1_000 })
    expect(result.findings.map(({ sentence, input }) => [sentence, Buffer.from(input).toString()])).toEqual([
      ['an x came behind a y', 'yx'],
    ])
  })

  test('of the same seed tries the same inputs', async () => {
    const tried = async (seed: number): Promise<string[]> => {
      const inputs: string[] = []
      const onInput = (input: Uint8Array): void => void inputs.push(Buffer.from(input).toString())
      const check = (input: Uint8Array) => ({ word: 'accepted', signal: `${input.length}` })
      await runTarget({ ...target, check }, { seed, clock: countingClock(), milliseconds: 200, onInput })
      // Looks of the run itself are few: the first twenty are always there.
      return inputs.slice(0, 20)
    }
    expect(await tried(5)).toEqual(await tried(5))
    expect(await tried(5)).not.toEqual(await tried(6))
  })

  test('keeps an input that made its reader say something new, and only that', () => {
    const pool = new InputPool([Buffer.from('seed')])
    for (const word of ['one', 'two', 'one']) pool.note(Buffer.from(word), word)
    expect(pool.signals).toBe(2)
    const random = new Random(3)
    const picked = new Set(Array.from({ length: 200 }, () => Buffer.from(pool.pick(random)).toString()))
    expect([...picked].sort()).toEqual(['one', 'seed', 'two'])
  })
})
