#!/usr/bin/env node
// npm run soak -- MINUTES [--seed S] [--json], npm run soak -- flat COUNT [--json]: a whole installation under load and
// faults, or so many executions and refusals in a row. Exit 1 on a violation, 2 on wrong usage.
import { randomInt } from 'node:crypto'
import { parseArgs } from 'node:util'
import { BrokerError } from '../protocol/errors.js'
import { runFlat } from '../selftest/soak/flat-run.js'
import { runSoak } from '../selftest/soak/soak-run.js'
import { flatTable, soakTable } from '../selftest/soak/soak-table.js'
import { startupHygiene } from '../system/startup.js'
import { given, asksForJson, fail } from './output.js'

const LONGEST_MINUTES = 1_440
const LARGEST_COUNT = 1_000_000
const SEEDS = 2 ** 32
const CLIENTS = 3

interface Arguments {
  readonly work: { readonly minutes: number } | { readonly count: number }
  readonly seed: number
  readonly json: boolean
}

async function soak(): Promise<void> {
  const { json, seed, work } = readArguments(process.argv.slice(2))
  startupHygiene({ environment: {} })
  const report = 'count' in work ? await flat(work.count) : await disturbed(work.minutes, seed)
  console.log(json ? JSON.stringify(report.document) : report.lines.join('\n'))
  if (report.document.violations.length > 0) process.exitCode = 1
}

async function flat(count: number) {
  const document = await runFlat({
    count,
    onProgress: (phase, done, looks) => console.error(`${done} ${phase}: ${JSON.stringify(looks)}`),
  })
  return { document, lines: flatTable(document) }
}

async function disturbed(minutes: number, seed: number) {
  console.error(`seed ${seed}: what happens comes again with --seed ${seed}, though not when`)
  const document = await runSoak({
    milliseconds: minutes * 60_000,
    seed,
    clients: CLIENTS,
    onProgress: ({ seconds, runs, hits }) => console.error(`${seconds} s: ${runs} runs, ${hits} hits`),
  })
  return { document, lines: soakTable(document) }
}

function readArguments(args: readonly string[]): Arguments {
  const { positionals, values } = parsed(args)
  const seed = values.seed === undefined ? randomInt(SEEDS) : Number(values.seed)
  const work = workOf(positionals)
  if (work === undefined || !Number.isInteger(seed) || seed < 0 || seed >= SEEDS) {
    throw misused()
  }
  return { work, seed, json: values.json }
}

function parsed(args: readonly string[]) {
  const options = { seed: { type: 'string' }, json: { type: 'boolean', default: false } } as const
  try {
    return parseArgs({ args: [...args], allowPositionals: true, options })
  } catch {
    throw misused()
  }
}

function misused(): BrokerError {
  return new BrokerError(
    'usage',
    `soak refused: expected MINUTES [--seed S] [--json], or flat COUNT [--json], got ${given(process.argv.slice(2).join(' '))}`,
  )
}

function workOf([first = '', second, ...more]: readonly string[]): Arguments['work'] | undefined {
  if (more.length > 0) return undefined
  const count = Number(second)
  if (first === 'flat') {
    return Number.isInteger(count) && count >= 1 && count <= LARGEST_COUNT ? { count } : undefined
  }
  const minutes = Number(first)
  return second === undefined && minutes > 0 && minutes <= LONGEST_MINUTES ? { minutes } : undefined
}

try {
  await soak()
} catch (error) {
  fail(error, asksForJson(process.argv))
}
