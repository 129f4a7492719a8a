// What cage-probe printed, read strictly: every attempt of the table once, and nothing else. A report that stops early
// is a failure of the suite, never a cage that held.
// Source: native/cage-probe/attempt.c.
import { constants } from 'node:os'
import { errnoName } from '../../cage/refusal.js'
import type { Attempt } from './attempt.js'

/** What the kernel answered: `ok`, `walled`, an errno or a signal; and how far the attempt got, where it counts. */
export interface Answer {
  readonly answer: string
  readonly count: number | null
}

/** The first of two names for one number. */
const SIGNAL_NAMES = new Map(
  Object.entries(constants.signals)
    .reverse()
    .map(([name, number]) => [number, name]),
)

const LINE = /^([a-z0-9-]+) (ok|walled|[es]\d+)(?: (-?\d+))?$/
const LAST = 'end'

function answerOf(word: string): string {
  const number = Number(word.slice(1))
  if (word.startsWith('e')) return errnoName(number)
  return word.startsWith('s') ? (SIGNAL_NAMES.get(number) ?? `signal ${number}`) : word
}

/** The attempts that the probe makes on this machine. */
export function attemptsHere(attempts: readonly Attempt[]): Attempt[] {
  return attempts.filter(({ x64Only }) => x64Only !== true || process.arch === 'x64')
}

/** @throws RangeError naming what is missing, doubled or unknown. */
export function readReport(text: string, attempts: readonly Attempt[]): Map<string, Answer> {
  const answers = new Map<string, Answer>()
  for (const line of text.trimEnd().split('\n')) {
    const [, name, word, count] = LINE.exec(line) ?? []
    if (name === undefined || word === undefined || answers.has(name))
      throw new RangeError(`report of the probe: expected one line an attempt, got "${line.slice(0, 80)}"`)
    answers.set(name, { answer: answerOf(word), count: count === undefined ? null : Number(count) })
  }
  const expected = new Set([...attemptsHere(attempts).map(({ name }) => name), LAST])
  const missing = [...expected].filter(name => !answers.has(name))
  const unknown = [...answers.keys()].filter(name => !expected.has(name))
  if (missing.length + unknown.length > 0) {
    throw new RangeError(
      `report of the probe: expected every attempt, got it without ${missing.join(', ') || 'any missing'} and with ${unknown.join(', ') || 'none unknown'}`,
    )
  }
  answers.delete(LAST)
  return answers
}
