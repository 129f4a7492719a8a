#!/usr/bin/env node
// The whole exercise of the example as one program: real commands in processes of their own, then the crash rounds; one
// JSON result with a row a step, and exit 1 on any miss. The rounds are shown as a table as well, on the other output.
// Source: the captured exercise of caller delivery.
import { mkdirSync } from 'node:fs'
import { Command, CommanderError } from 'commander'
import { BrokerError } from '../../protocol/errors.js'
import { retainFileNow } from '../../system/retained-file.js'
import { crashLines } from './crash-lines.js'
import { CRASH_BOUNDARIES } from './crash-boundaries.js'
import { type CrashRow, crashRounds } from './crash-rounds.js'
import { ExercisePlace, programBeside } from './exercise-place.js'
import { EXERCISE_STEPS, type ExerciseStep } from './exercise-steps.js'
import { sayRefusal } from './speech.js'

interface StepRow {
  readonly step: string
  readonly kept: boolean
  readonly missed: string | null
}

/** A step that throws is a miss like any other; the next ones still say what they find. */
function rowOf(at: ExercisePlace, { run, step }: ExerciseStep): StepRow {
  try {
    const missed = run(at)
    return { kept: missed === null, missed, step }
  } catch (error) {
    return { kept: false, missed: error instanceof Error ? error.message : String(error), step }
  }
}

async function crashTable(at: ExercisePlace, rounds: number): Promise<CrashRow[]> {
  const folder = at.path('crash')
  mkdirSync(folder, { mode: 0o700 })
  const rows: CrashRow[] = []
  for (const boundary of rounds === 0 ? [] : CRASH_BOUNDARIES) {
    rows.push(await crashRounds(boundary, { folder, program: programBeside('interrupted.js'), rounds }))
  }
  return rows
}

async function exercise(output: string, chio: string, rounds: number): Promise<void> {
  const at = new ExercisePlace(output, chio)
  const steps = EXERCISE_STEPS.map(step => rowOf(at, step))
  const crash = await crashTable(at, rounds)
  const kept = steps.every(row => row.kept) && crash.every(({ misses }) => misses.length === 0)
  const result = { schema: 'review-note.exercise.v1', kept, processes: at.processes, steps, crash }
  const text = `${JSON.stringify(result, null, 2)}\n`
  retainFileNow(at.path('exercise.json'), Buffer.from(text, 'utf8'), 0o600)
  process.stdout.write(text)
  for (const line of crashLines(crash)) console.error(line)
  if (!kept) process.exitCode = 1
}

const program = new Command('exercise')
  .description('the whole exercise of review-note, with one JSON result')
  .requiredOption('--chio <path>', 'the program chio, which verifies the receipts')
  .requiredOption('--output <dir>', 'folder that the exercise makes')
  .option('--rounds <n>', 'crash rounds a boundary', '1')
  .exitOverride()
  .configureOutput({ outputError: () => undefined })
  .action(({ chio, output, rounds }: { chio: string; output: string; rounds: string }) => {
    if (!/^[0-9]{1,4}$/.test(rounds)) throw new BrokerError('usage', '--rounds refused: expected 0 to 9999')
    return exercise(output, chio, Number(rounds))
  })
try {
  await program.parseAsync(process.argv)
} catch (error) {
  if (error instanceof CommanderError && error.exitCode === 0) process.exitCode = 0
  else sayRefusal(error instanceof CommanderError ? new BrokerError('usage', error.message) : error, false)
}
