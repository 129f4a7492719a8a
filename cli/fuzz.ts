#!/usr/bin/env node
// npm run fuzz -- TARGET|all SECONDS [--seed S] [--json]: feeds readers with changed inputs, shows what they said,
// keeps what broke a promise as a file below test/fuzz/corpus. Exit 1 on a finding, 2 on wrong usage.
import { randomInt } from 'node:crypto'
import { parseArgs } from 'node:util'
import { BrokerError } from '../protocol/errors.js'
import { keepCase } from '../selftest/fuzz/corpus.js'
import type { TargetResult } from '../selftest/fuzz/fuzz-run.js'
import { fuzzTable } from '../selftest/fuzz/fuzz-table.js'
import { FUZZ_TARGET_NAMES, FUZZ_TARGETS } from '../selftest/fuzz/targets.js'
import { runWatched } from '../selftest/fuzz/watched-run.js'
import { startupHygiene } from '../system/startup.js'
import { given, asksForJson, fail } from './output.js'

const LONGEST_SECONDS = 86_400
const SEEDS = 2 ** 32

async function fuzz(): Promise<void> {
  startupHygiene({ environment: {} })
  const { targets, seconds, seed, json } = readArguments(process.argv.slice(2))
  const results: TargetResult[] = []
  for (const { name, maximumInputBytes } of targets) {
    const order = { target: name, seed, milliseconds: seconds * 1_000 }
    results.push(await runWatched(order, maximumInputBytes))
  }
  const kept = results.flatMap(({ target, findings }) => findings.map(({ input }) => keepCase(target, input)))
  if (json) console.log(JSON.stringify(documentOf(results, kept)))
  else console.log([`seed ${seed}`, ...fuzzTable(results, kept)].join('\n'))
  if (kept.length > 0) process.exitCode = 1
}

function readArguments(args: readonly string[]) {
  const { positionals, values } = parsed(args)
  const [name = '', length = ''] = positionals
  const targets = FUZZ_TARGETS.filter(target => name === 'all' || target.name === name)
  const seconds = Number(length)
  const seed = values.seed === undefined ? randomInt(SEEDS) : Number(values.seed)
  const isSeed = Number.isInteger(seed) && seed >= 0 && seed < SEEDS
  const isLength = seconds > 0 && seconds <= LONGEST_SECONDS
  if (targets.length === 0 || positionals.length !== 2 || !isLength || !isSeed) {
    refuseUsage()
  }
  return { targets, seconds, seed, json: values.json }
}

function parsed(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      allowPositionals: true,
      options: { seed: { type: 'string' }, json: { type: 'boolean', default: false } },
    })
  } catch (error) {
    return refuseUsage(error)
  }
}

function refuseUsage(cause?: unknown): never {
  throw new BrokerError(
    'usage',
    `fuzz refused: expected TARGET SECONDS [--seed S] [--json] with a target of all, ${FUZZ_TARGET_NAMES.join(', ')}, got ${given(process.argv.slice(2).join(' '))}`,
    { cause },
  )
}

function documentOf(results: readonly TargetResult[], kept: readonly string[]) {
  let file = 0
  const rows = results.map(({ findings, ...row }) => ({
    ...row,
    findings: findings.map(({ sentence }) => ({ sentence, file: kept[file++] })),
  }))
  return { schema: 'chio.fuzz.v1', rows }
}

try {
  await fuzz()
} catch (error) {
  fail(error, asksForJson(process.argv))
}
