// Owns the crash rounds: in each a real process is ended by kill -9 at a moment of one boundary, drawn at random, and the
// same commands are asked again afterwards, twice.
// Must never: take a round for kept that was not killed, or that repeated itself in other bytes.
// Source: "at most one effect, never an invented result, repeated commands byte-identical".
import { spawn } from 'node:child_process'
import { randomBytes, randomInt } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isBrokerError } from '../../protocol/errors.js'
import { type Act, actIn } from './act.js'
import { authorize } from './authorize.js'
import type { CrashBoundary, Interrupted } from './crash-boundaries.js'
import { execute } from './execute.js'
import { initialise } from './init.js'
import { AppendedNote } from './note.js'
import { type RequestFiles, requestFiles } from './place.js'
import { report } from './report.js'
import { findDocument } from './retained.js'
import { snapshotOf } from './snapshot.js'

const OPERATIONS_A_STATE = 4
const LONGEST_RANDOM_NOTE_BYTES = 3_000

export interface CrashRow {
  readonly boundary: string
  readonly rounds: number
  readonly killed: number
  readonly effects: number
  readonly completed: number
  readonly unknown: number
  readonly misses: readonly string[]
}

export interface CrashTerms {
  /** An empty folder of the run's own. */
  readonly folder: string
  /** The program that ends itself: `interrupted.js`. */
  readonly program: string
  readonly rounds: number
}

/** Runs the rounds of one boundary, each with an operation of its own. */
export async function crashRounds(boundary: CrashBoundary, terms: CrashTerms): Promise<CrashRow> {
  const row = {
    boundary: boundary.boundary,
    rounds: terms.rounds,
    killed: 0,
    effects: 0,
    completed: 0,
    unknown: 0,
  }
  const misses: string[] = []
  let act: Act | undefined
  for (let round = 0; round < terms.rounds; round += 1) {
    if (act === undefined || round % OPERATIONS_A_STATE === 0) {
      const state = join(terms.folder, `state-${boundary.boundary.replace(/\W+/g, '-')}-${round}`)
      act = actIn((await initialise(state, OPERATIONS_A_STATE, quiet)).state, quiet)
    }
    const ended = await oneRound(boundary, { act, key: `round-${round}`, program: terms.program })
    row.killed += ended.isKilled ? 1 : 0
    row.effects += ended.effects
    row[ended.end] += 1
    misses.push(...ended.misses)
  }
  return { ...row, misses }
}

const quiet = (): void => undefined

interface Round {
  readonly act: Act
  readonly key: string
  readonly program: string
}

interface EndedRound {
  readonly effects: number
  readonly end: 'completed' | 'unknown'
  readonly isKilled: boolean
  readonly misses: readonly string[]
}

async function oneRound({ boundary, end, moments }: CrashBoundary, round: Round): Promise<EndedRound> {
  const { act, key } = round
  const note = `${randomBytes(randomInt(1, LONGEST_RANDOM_NOTE_BYTES / 2)).toString('hex')}\n`
  const file = join(act.place.state, `${key}.txt`)
  writeFileSync(file, note)
  const [command, cutpoint] = moments[randomInt(moments.length)] ?? ['authorize', '']
  const commands = commandsOf(act, key, file)
  for (const earlier of ORDER.slice(0, ORDER.indexOf(command))) await commands[earlier]()
  const isKilled = await interrupt(round, argumentsOf(command, round, file), cutpoint)
  const first = await told(commands)
  const kept = snapshotOf(act.place)
  const again = await told(commands)
  const effects = effectsOf(act, key)
  const reached = first.get('report') === 'done' ? 'completed' : 'unknown'
  const found: readonly [boolean, string][] = [
    [isKilled, 'was not killed'],
    [reached === end, `ended as ${reached}: ${[...first.values()].join(', ')}`],
    [reached === 'completed' ? effects === 1 : effects <= 1, `had ${effects} effects`],
    [sameAs(first, again), `was told ${[...again.values()].join(', ')} the second time`],
    [snapshotOf(act.place) === kept, 'repeated itself in other bytes'],
    [isResultOf(requestFiles(act.place, key), reached === 'completed' ? note : null), 'told another result'],
    [
      end === 'completed' || first.get('execute') === 'executor_outcome_unknown',
      'was not told to be unknown',
    ],
  ]
  const misses = found
    .filter(([isKept]) => !isKept)
    .map(([, what]) => `${boundary}, ${cutpoint}: ${key} ${what}`)
  return { effects, end: reached, isKilled, misses }
}

const ORDER: readonly Interrupted[] = ['authorize', 'execute', 'report']

type Commands = Readonly<Record<Interrupted, () => Promise<unknown>>>

/** Each opens the original stores again. */
function commandsOf(act: Act, key: string, file: string): Commands {
  return {
    authorize: () => authorize(act, file, key),
    execute: () => execute(act, key, false),
    report: () => report(act, key),
  }
}

function argumentsOf(command: Interrupted, { act, key }: Round, file: string): readonly string[] {
  const asked = command === 'authorize' ? [command, file, '--operation', key] : [command, key]
  return [...asked, '--state', act.place.state]
}

/** @returns whether the process was ended by the signal, and by nothing else. */
async function interrupt({ program }: Round, args: readonly string[], cutpoint: string): Promise<boolean> {
  const child = spawn(process.execPath, [program, cutpoint, ...args], { stdio: 'ignore' })
  const [, signal] = (await once(child, 'close')) as [number | null, string | null]
  return signal === 'SIGKILL'
}

/** What each command came to. */
async function told(commands: Commands): Promise<Map<string, string>> {
  const ends = new Map<string, string>()
  for (const command of ORDER) ends.set(command, await endOf(commands[command]))
  return ends
}

async function endOf(command: () => Promise<unknown>): Promise<string> {
  try {
    await command()
    return 'done'
  } catch (error) {
    if (isBrokerError(error)) return error.code
    throw error
  }
}

function sameAs(first: ReadonlyMap<string, string>, again: ReadonlyMap<string, string>): boolean {
  return [...first].every(([command, end]) => again.get(command) === end)
}

/** Lines of the journal that are this operation's. */
function effectsOf({ place }: Act, key: string): number {
  const expected = /"operation_id":"([0-9a-f]{64})"/.exec(
    readFileSync(requestFiles(place, key).expected, 'utf8'),
  )
  if (!existsSync(place.journal)) return 0
  const lines = readFileSync(place.journal, 'utf8').split('\n')
  return lines.filter(line => line.startsWith(`{"operation_id":"${expected?.[1]}"`)).length
}

/** @param note null: there may be no result. */
function isResultOf({ result }: RequestFiles, note: string | null): boolean {
  return (findDocument(result, AppendedNote)?.note ?? null) === note
}
