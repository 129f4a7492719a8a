// How the crash rounds are shown to a person: a line a boundary, and below it what does not hold.
import type { CrashRow } from './crash-rounds.js'

const COLUMNS: readonly (readonly [title: string, width: number, of: (row: CrashRow) => string])[] = [
  ['killed', 28, ({ boundary }) => boundary],
  ['rounds', 8, ({ rounds }) => String(rounds)],
  ['ended', 7, ({ killed }) => String(killed)],
  ['effects', 9, ({ effects }) => String(effects)],
  ['completed', 11, ({ completed }) => String(completed)],
  ['unknown', 9, ({ unknown }) => String(unknown)],
  ['ok', 2, ({ misses }) => (misses.length === 0 ? 'ok' : 'NO')],
]

/** No lines for no rounds. */
export function crashLines(rows: readonly CrashRow[]): string[] {
  if (rows.length === 0) return []
  const head = COLUMNS.map(([title, width]) => title.padEnd(width)).join('')
  return [head, ...rows.flatMap(linesOf)].map(line => line.trimEnd())
}

function linesOf(row: CrashRow): string[] {
  return [
    COLUMNS.map(([, width, of]) => of(row).padEnd(width)).join(''),
    ...row.misses.map(miss => `  ${miss}`),
  ]
}
