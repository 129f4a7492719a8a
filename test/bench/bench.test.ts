// The bench as its user runs it, with one round: that it measures both sides and says so in the promised form. How
// long anything took is never asserted here: a busy machine must not fail a test.
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import type { RowResult } from '../../bench/row.js'
import { ROWS } from '../../bench/rows.js'
import { packageRoot } from '../../native/paths.js'

const run = promisify(execFile)
const PROGRAM = join(packageRoot(), 'dist', 'bench', 'bench.js')

/** Rows that install nothing and fill nothing. */
const CHEAP = ['execute-vs-https', 'operation-vs-bwrap', 'warm-vs-cold', 'cold-vs-bwrap', 'verify', 'control']
const SUMMARY = ['mad', 'n', 'p50', 'p95', 'p99', 'unit']

async function bench(...args: string[]): Promise<string> {
  const { stdout } = await run(process.execPath, [PROGRAM, ...args])
  return stdout
}

/** One dot a sample; those of `control` are as many as fit in a round. */
function expectPicture(id: string): void {
  const picture = readFileSync(join(packageRoot(), 'bench', 'out', `${id}.svg`), 'utf8')
  expect(picture).toMatch(/^<svg [^>]+>[^]*<\/svg>\n$/)
  expect(picture.match(/<circle /g)?.length).toBeGreaterThanOrEqual(2)
}

describe('npm run bench', () => {
  test('measures both sides of the cheap rows and gives them as JSON, with a picture each', async () => {
    const asked = CHEAP.flatMap(id => ['--row', id])
    const document = JSON.parse(await bench('--json', '--rounds', '1', ...asked)) as {
      schema: string
      rows: RowResult[]
    }
    expect(Object.keys(document).sort()).toEqual(['rows', 'schema'])
    expect(document.schema).toBe('chio.bench.v1')
    expect(document.rows.map(({ id }) => id)).toEqual(CHEAP)
    for (const row of document.rows) {
      expect(Object.keys(row).sort()).toEqual(['goal', 'id', 'met', 'note', 'ours', 'ratio', 'theirs'])
      expect(Object.keys(row.ours ?? {}).sort()).toEqual(SUMMARY)
      expect(Object.keys(row.theirs ?? {}).sort()).toEqual(SUMMARY)
      expect(row.ratio).toBeGreaterThan(0)
      expect(typeof row.met).toBe('boolean')
      expectPicture(row.id)
    }
  })

  test('shows a table with one line a row', async () => {
    const table = await bench('--rounds', '1', '--row', 'verify')
    expect(table).toMatch(/^row +ours p50 .* goal +met$/m)
    expect(table).toMatch(/^verify .* \/s .* ×/m)
  })

  test('refuses a row that it does not know, and names those that it does', async () => {
    const refused: unknown = await bench('--row', 'speed').catch((error: unknown) => error)
    expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining('execute-vs-https') as string })
  })

  test('has a row for everything that is promised', () => {
    expect(ROWS.map(({ id }) => id)).toEqual([
      'execute-vs-https',
      'operation-vs-bwrap',
      'warm-vs-cold',
      'cold-vs-bwrap',
      'launch-vs-srt',
      'slot-rate',
      'vs-nginx',
      'start',
      'rss',
      'growth',
      'verify',
      'control',
      'capacity',
    ])
  })
})
