// Owns how a slow program is run: its output goes to a log file, a line every 15 seconds says that it still
// works, and the end of the log is shown when it fails. It must never swallow a failure.
import { spawn } from 'node:child_process'
import { closeSync, mkdirSync, openSync, readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { SetupFailure } from './failure.mjs'

const HEARTBEAT_MS = 15_000
const SHOWN_LOG_LINES = 40

/** @param {string} line */
export function say(line) {
  process.stdout.write(`setup: ${line}\n`)
}

/** @param {number} startedMs */
export function secondsSince(startedMs) {
  return ((Date.now() - startedMs) / 1000).toFixed(1)
}

/**
 * @typedef {object} LongStep
 * @property {string} title what happens, for the first line
 * @property {readonly string[]} command program and arguments
 * @property {string} folder working folder
 * @property {string} logPath where its output goes
 * @property {NodeJS.ProcessEnv} [environment]
 * @property {string} [patience] why it takes long, repeated in the heartbeat
 */

/**
 * Runs one program to its end.
 * @param {LongStep} step
 * @throws {SetupFailure} when it does not start or does not exit with 0
 */
export async function runLongStep(step) {
  const startedMs = Date.now()
  say(`${step.title} …`)
  const ending = await runToEnd(step, startedMs)
  if (ending !== undefined) throw failureOf(step, ending)
  say(`${step.title}: done in ${secondsSince(startedMs)} s`)
}

/**
 * @param {LongStep} step
 * @param {number} startedMs
 * @returns {Promise<string | undefined>} how it failed
 */
async function runToEnd(step, startedMs) {
  mkdirSync(dirname(step.logPath), { recursive: true })
  const log = openSync(step.logPath, 'w')
  const heartbeat = setInterval(() => sayStillWorking(step, startedMs), HEARTBEAT_MS)
  try {
    return await spawnAndWait(step, log)
  } finally {
    clearInterval(heartbeat)
    closeSync(log)
  }
}

/**
 * @param {LongStep} step
 * @param {number} startedMs
 */
function sayStillWorking(step, startedMs) {
  const why = step.patience === undefined ? '' : `; ${step.patience}`
  say(`  … ${Math.round((Date.now() - startedMs) / 1000)} s${why}`)
}

/**
 * @param {LongStep} step
 * @param {number} log
 * @returns {Promise<string | undefined>}
 */
function spawnAndWait(step, log) {
  const [program = '', ...programArguments] = step.command
  return new Promise(resolve => {
    const child = spawn(program, programArguments, {
      cwd: step.folder,
      env: step.environment ?? process.env,
      stdio: ['ignore', log, log],
    })
    child.on('error', error => resolve(error.message))
    child.on('exit', (code, signal) => resolve(code === 0 ? undefined : (signal ?? `exit code ${code}`)))
  })
}

/**
 * @param {LongStep} step
 * @param {string} ending
 */
function failureOf(step, ending) {
  const lines = readFileSync(step.logPath, 'utf8').trimEnd().split('\n').slice(-SHOWN_LOG_LINES)
  const shown = lines.map(line => `  | ${line}`).join('\n')
  return new SetupFailure(`${step.title} failed (${ending}); the end of ${step.logPath}:\n${shown}`)
}
