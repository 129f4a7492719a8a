// Owns how rows are shown on a screen: one line a row, figures with the digits that they deserve.
import type { BenchRow, RowResult } from './row.js'
import type { Summary } from './statistics.js'

const HEADINGS = [
  'row',
  'ours p50',
  'p95',
  'MAD',
  'theirs p50',
  'p95',
  'MAD',
  'ratio',
  'goal',
  'met',
] as const
const LEFT_ALIGNED = new Set(['row', 'goal', 'met'])

/** Three digits; whole numbers from a hundred on. */
function digits(value: number): string {
  return Math.abs(value) >= 100 ? value.toFixed(0) : value.toPrecision(3)
}

function cellsOf(summary: Summary | null): string[] {
  if (summary === null) return ['-', '-', '-']
  const { mad, p50, p95, unit } = summary
  return [`${digits(p50)} ${unit}`, digits(p95), digits(mad)]
}

function lineOf({ goal, id, met, ours, ratio, theirs }: RowResult): string[] {
  const verdict = met === null ? 'not judged' : met ? 'yes' : 'NO'
  const factor = ratio === null ? '-' : `${ratio.toPrecision(3)} ×`
  return [id, ...cellsOf(ours), ...cellsOf(theirs), factor, goal, verdict]
}

/** The table, then a sentence for every row that could not be compared. */
export function tableOf(results: readonly RowResult[]): string {
  const lines = [[...HEADINGS], ...results.map(lineOf)]
  const widths = HEADINGS.map((_heading, column) =>
    Math.max(...lines.map(cells => (cells[column] ?? '').length)),
  )
  const table = lines.map(cells =>
    cells
      .map((cell, column) => {
        const width = widths[column] ?? 0
        return LEFT_ALIGNED.has(HEADINGS[column] as string) ? cell.padEnd(width) : cell.padStart(width)
      })
      .join('  ')
      .trimEnd(),
  )
  const missing = results
    .filter(({ ours, theirs }) => ours === null || theirs === null)
    .map(({ id, note }) => `${id}: ${note}`)
  return [...table, ...(missing.length > 0 ? ['', ...missing] : [])].join('\n')
}

/** The same rows as a Markdown table, for the page that keeps the last one. */
export function markdownOf(results: readonly RowResult[]): string {
  const alignment = HEADINGS.map(heading => (LEFT_ALIGNED.has(heading) ? '---' : '---:'))
  const lines = [[...HEADINGS], alignment, ...results.map(lineOf)]
  return lines.map(cells => `| ${cells.join(' | ')} |`).join('\n')
}

/** The rows that can be asked for, one a line. */
export function catalogueOf(rows: readonly BenchRow[]): string {
  return rows.map(({ id, ours, theirs }) => `  ${id.padEnd(18)} ${ours}  |  ${theirs}`).join('\n')
}
