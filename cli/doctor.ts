// chio doctor: whether this machine, this user and this installation can do the main job, line by line.
import { existsSync } from 'node:fs'
import { type Check, isFit } from '../selftest/doctor/check.js'
import { examine } from '../selftest/doctor/doctor.js'
import { beside } from './columns.js'
import { type CommonOptions, print } from './output.js'
import { defaultState, findState, layoutOfState } from './state.js'

const VERDICT_COLUMNS = 9

/** Prints every check. Exit 1 when the main job cannot run here. */
export async function runDoctor(options: CommonOptions): Promise<void> {
  const layout = layoutOfState(judgedState(options.state))
  const checks = await examine({ layout, environment: process.env })
  const lines = [...checks.flatMap(linesOf), summaryOf(checks)]
  print(options, { schema: 'chio.doctor.v1', checks }, lines)
  if (!isFit(checks)) process.exitCode = 1
}

/** The installation that commands find; without any, the place where `init` would make one. */
function judgedState(flag: string | undefined): string {
  const found = findState(flag)
  const isNamed = (flag ?? process.env['CHIO_STATE']) !== undefined
  return isNamed || existsSync(found) ? found : defaultState()
}

function linesOf({ found, name, remedy, verdict }: Check): string[] {
  const lines = beside(verdict, `${name}: ${found}`, VERDICT_COLUMNS)
  return remedy === null ? lines : [...lines, ...remedyLines(remedy)]
}

/** A remedy of several lines holds a file to be written: those lines stay as they are. */
function remedyLines(remedy: string): string[] {
  if (!remedy.includes('\n')) return beside('', `next: ${remedy}`, VERDICT_COLUMNS)
  return ['next:', ...remedy.split('\n')].map(line => `${' '.repeat(VERDICT_COLUMNS)}${line}`.trimEnd())
}

function summaryOf(checks: readonly Check[]): string {
  const count = (verdict: Check['verdict']): number =>
    checks.filter(check => check.verdict === verdict).length
  if (!isFit(checks))
    return `The main job cannot run here: ${count('missing')} missing, ${count('weaker')} weaker.`
  return `The main job can run here: ${count('ok')} ok, ${count('weaker')} weaker.`
}
