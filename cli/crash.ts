#!/usr/bin/env node
// npm run crash: kills every process of an installation of its own where it hurts, starts it again, and says whether
// the promises held. Leaves nothing behind.
import { parseArgs } from 'node:util'
import { BrokerError } from '../protocol/errors.js'
import { CUTPOINTS } from '../selftest/crash/cutpoints.js'
import { type RandomReport, runRandom } from '../selftest/crash/random-run.js'
import type { RowResult } from '../selftest/crash/row-result.js'
import { runTable, TABLE_SCHEMA } from '../selftest/crash/table-run.js'
import { startupHygiene } from '../system/startup.js'
import { headLine, resultLines, sumLines } from './crash-table.js'
import { given, asksForJson, fail, jsonLine } from './output.js'

const USAGE = 'crash [--json] [--only NAME] [--random N [--seed S]]'

const PROGRESS_ROUNDS = 50

interface CrashArguments {
  readonly json: boolean
  readonly only: string | undefined
  readonly random: number | undefined
  readonly seed: number
}

function readArguments(args: readonly string[]): CrashArguments {
  try {
    const options = {
      json: { type: 'boolean' },
      only: { type: 'string' },
      random: { type: 'string' },
      seed: { type: 'string' },
    } as const
    const { values } = parseArgs({ args: [...args], options, strict: true, allowPositionals: false })
    const { json = false, only, random, seed } = values
    return {
      json,
      only,
      random: random === undefined ? undefined : wholeNumber(random),
      seed: seed === undefined ? process.pid : wholeNumber(seed),
    }
  } catch {
    throw new BrokerError(
      'usage',
      `arguments refused: expected known options and whole numbers, got ${given(args.join(' '))}; ${USAGE}`,
    )
  }
}

function wholeNumber(text: string): number {
  if (/^[0-9]{1,9}$/.test(text)) return Number(text)
  throw new RangeError('expected a whole number')
}

async function crash({ json, only, random, seed }: CrashArguments): Promise<void> {
  if (random === undefined) return table(only, json)
  console.error(`seed ${seed}; the same again: npm run crash -- --random ${random} --seed ${seed}`)
  const onRound = (round: number): void => {
    if (round % PROGRESS_ROUNDS === 0) console.error(`${round} of ${random} rounds`)
  }
  const report = await runRandom({ rounds: random, seed, onRound })
  console.log(json ? jsonLine(report) : randomLines(report).join('\n'))
  if (report.violations.length > 0) process.exitCode = 1
}

async function table(only: string | undefined, json: boolean): Promise<void> {
  const rows = CUTPOINTS.filter(
    ({ name }) => only === undefined || name === only || name.startsWith(`${only}.`),
  )
  if (rows.length === 0)
    throw new BrokerError(
      'usage',
      `--only refused: expected a name of the table, got ${given(only)}; ${USAGE}`,
    )
  if (!json) console.log(headLine())
  const results: RowResult[] = []
  const unlisted = await runTable(rows, result => {
    results.push(result)
    if (!json) console.log(resultLines(result).join('\n'))
  })
  const document = { schema: TABLE_SCHEMA, rows: results, unlisted }
  console.log(json ? jsonLine(document) : sumLines(results, unlisted).join('\n'))
  if (unlisted.length > 0 || results.some(({ ok }) => !ok)) process.exitCode = 1
}

function randomLines(report: RandomReport): string[] {
  const listed = (counts: Readonly<Record<string, number>>): string =>
    Object.entries(counts)
      .sort(([one], [other]) => (one < other ? -1 : 1))
      .map(([name, count]) => `${name} ${count}`)
      .join(', ')
  const { attempts, hits, killed, operations, rounds, seconds, told, violations } = report
  return [
    `${rounds} rounds in ${seconds} s`,
    `killed      ${listed(killed)}`,
    `provider    ${hits} hits`,
    `attempts    ${listed(attempts)}`,
    `operations  ${listed(operations)}`,
    `hosts told  ${listed(told)}`,
    violations.length === 0 ? 'violations  none' : `violations  ${violations.length}`,
    ...violations,
  ]
}

try {
  const given = readArguments(process.argv.slice(2))
  startupHygiene({ environment: {} })
  await crash(given)
} catch (error) {
  fail(error, asksForJson(process.argv))
}
