// How the crash table is printed: a line a row, at most 140 columns, and below a failed row what does not hold.
import type { RowResult } from '../selftest/crash/row-result.js'

const COLUMNS: readonly (readonly [title: string, width: number, of: (row: RowResult) => string])[] = [
  ['cutpoint', 40, ({ name }) => name],
  ['died', 10, ({ who }) => who],
  ['hits', 5, ({ hits }) => String(hits)],
  ['attempt', 16, ({ attempt }) => attempt],
  ['operation', 35, ({ operation }) => operation],
  ['host was told', 16, ({ told }) => told.replace('_', ' ')],
  ['ok', 3, ({ ok }) => (ok ? 'ok' : 'NO')],
]

export function headLine(): string {
  return COLUMNS.map(([title, width]) => title.padEnd(width))
    .join('')
    .trimEnd()
}

export function resultLines(row: RowResult): string[] {
  const line = COLUMNS.map(([, width, of]) => of(row).padEnd(width))
    .join('')
    .trimEnd()
  const missed = row.isReached ? [] : ['its moment never came']
  return [line, ...[...missed, ...row.violations].map(sentence => `  ${sentence}`)]
}

export function sumLines(rows: readonly RowResult[], unlisted: readonly string[]): string[] {
  const failed = rows.filter(({ ok }) => !ok).length
  return [
    '',
    `${rows.length} ${rows.length === 1 ? 'cutpoint' : 'cutpoints'}, ${failed === 0 ? 'all promises held' : `${failed} with a promise broken`}`,
    ...(unlisted.length === 0 ? [] : [`reached and in no row: ${unlisted.join(', ')}`]),
  ]
}
