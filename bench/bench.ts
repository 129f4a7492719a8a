// npm run bench: measures the rows in order and shows them. Wiring only.
// Must never: judge a run by its exit code. A missed goal is a figure; only a row that could not run exits 1.
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { packageRoot } from '../native/index.js'
import { ERROR_CODES } from '../protocol/error-codes.js'
import { errorDocument, isBrokerError } from '../protocol/errors.js'
import { startupHygiene } from '../system/startup.js'
import { type BenchOptions, readOptions } from './bench-options.js'
import { Lab } from './lab.js'
import { machineLine } from './machine.js'
import { PeerMissing } from './peer-missing.js'
import { plotOf } from './plot.js'
import { profileOperations } from './profile.js'
import { type BenchRow, resultOf, type RowResult, unmeasured } from './row.js'
import { ROWS } from './rows.js'
import { showSteps } from './steps.js'
import { catalogueOf, markdownOf, tableOf } from './table.js'

const SCHEMA = 'chio.bench.v1'
const OUTPUT = join(packageRoot(), 'bench', 'out')

async function main(): Promise<void> {
  startupHygiene({ environment: {} })
  const options = readOptions(process.argv.slice(2), ROWS)
  const lab = new Lab(options.retainedAttempts)
  try {
    if (options.profile) console.log((await profileOperations(options.rounds, OUTPUT)).join('\n'))
    else if (options.steps) await showSteps(lab, options)
    else await showRows(lab, options)
  } finally {
    await lab.close()
  }
}

async function showRows(lab: Lab, options: BenchOptions): Promise<void> {
  const before = machineLine()
  const results: RowResult[] = []
  for (const row of options.rows) results.push(await measureRow(lab, row, options.rounds ?? row.rounds))
  if (options.json) console.log(JSON.stringify({ schema: SCHEMA, rows: results }))
  else if (options.markdown) console.log([before, '', markdownOf(results)].join('\n'))
  else console.log([before, '', tableOf(results), '', `plots: ${OUTPUT}`].join('\n'))
}

/** A rival that is missing is said in the row; a fault of ours as well, and it ends in exit 1. */
async function measureRow(lab: Lab, row: BenchRow, rounds: number): Promise<RowResult> {
  console.error(`measuring ${row.id}, ${rounds} rounds`)
  try {
    const measured = await row.measure(lab, rounds)
    mkdirSync(OUTPUT, { recursive: true })
    writeFileSync(join(OUTPUT, `${row.id}.svg`), plotOf(row, measured))
    return resultOf(row, measured)
  } catch (error) {
    if (error instanceof PeerMissing) return unmeasured(row, error.message)
    process.exitCode = 1
    console.error(error)
    return unmeasured(row, `it failed: ${error instanceof Error ? error.message : 'unknown fault'}`)
  }
}

try {
  await main()
} catch (error) {
  if (!isBrokerError(error)) throw error
  const asText = `bench: ${error.message}${error.code === 'usage' ? `\nrows:\n${catalogueOf(ROWS)}` : ''}`
  console.error(process.argv.includes('--json') ? JSON.stringify(errorDocument(error)) : asText)
  process.exitCode = ERROR_CODES[error.code].exitCode
}
