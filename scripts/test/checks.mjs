// Owns the checks of one run and their order: set-up, lint, format, types, tests. A failed set-up ends the run,
// a failed check does not: one run names everything that is wrong.
import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ROOT } from '../setup/checkout.mjs'
import { judge } from './outcome.mjs'

/** A hung run is ended and failed: the small one is promised in ten minutes. */
const SMALL_RUN_LIMIT_MS = 30 * 60_000
const FULL_RUN_LIMIT_MS = 8 * 60 * 60_000

const STATIC_CHECKS = [
  { name: 'lint', command: ['node_modules/.bin/oxlint', '--type-aware', '--deny-warnings', '.'] },
  { name: 'format', command: ['node_modules/.bin/biome', 'format', '.'] },
  { name: 'types', command: ['node_modules/.bin/tsc', '--noEmit', '-p', 'tsconfig.json'] },
]

/**
 * Runs everything.
 * @param {{ full: boolean }} options
 * @returns {Promise<import('./outcome.mjs').Outcome>}
 */
export async function runAllChecks({ full }) {
  const setUpEnding = await run([process.execPath, join(ROOT, 'scripts/setup.mjs')])
  if (setUpEnding !== undefined) {
    return { passed: 0, failed: 1, skipped: 0, failures: [`set-up (${setUpEnding})`] }
  }
  const checks = []
  for (const { name, command } of STATIC_CHECKS) {
    process.stdout.write(`== ${name}\n`)
    checks.push({ name, ok: (await run(command)) === undefined })
  }
  return judge(checks, await runVitest(full))
}

/**
 * @param {boolean} full
 * @returns {Promise<import('./outcome.mjs').VitestRun>}
 */
async function runVitest(full) {
  const folder = mkdtempSync(join(tmpdir(), 'chio-test-'))
  const summaryPath = join(folder, 'summary.json')
  try {
    process.stdout.write(`== tests (${full ? 'full' : 'small'} counts)\n`)
    const command = [
      process.execPath,
      join(ROOT, 'node_modules/vitest/vitest.mjs'),
      'run',
      '--allowOnly=false',
    ]
    const ending = await run(command, {
      environment: { ...process.env, CHIO_TEST_SUMMARY: summaryPath, ...(full ? { CHIO_FULL: '1' } : {}) },
      limitMs: full ? FULL_RUN_LIMIT_MS : SMALL_RUN_LIMIT_MS,
    })
    return { ending, summary: readSummary(summaryPath) }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/**
 * @param {string} path
 * @returns {import('./outcome.mjs').VitestSummary | undefined}
 */
function readSummary(path) {
  return existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')) : undefined
}

/**
 * Runs one program with our own output.
 * @param {readonly string[]} command
 * @param {{ environment?: NodeJS.ProcessEnv, limitMs?: number }} [options]
 * @returns {Promise<string | undefined>} how it failed
 */
function run(command, { environment = process.env, limitMs = SMALL_RUN_LIMIT_MS } = {}) {
  const [program = '', ...programArguments] = command
  return new Promise(resolve => {
    const child = spawn(program, programArguments, {
      cwd: ROOT,
      env: environment,
      stdio: ['ignore', 'inherit', 'inherit'],
      timeout: limitMs,
    })
    child.on('error', error => resolve(error.message))
    child.on('exit', (code, signal) => resolve(code === 0 ? undefined : (signal ?? `exit code ${code}`)))
  })
}
