// Owns how the results of a fuzz run are shown on a screen: one line a target, then one for each finding.
import type { TargetResult } from './fuzz-run.js'

const HEADINGS = [
  'target',
  'inputs',
  'inputs/s',
  'accepted',
  'refused',
  'said',
  'slowest',
  'findings',
] as const

/** @param kept the path of each finding's file, in their order. */
export function fuzzTable(results: readonly TargetResult[], kept: readonly string[]): string[] {
  const lines = [[...HEADINGS], ...results.map(cellsOf)]
  const widths = HEADINGS.map((_heading, column) =>
    Math.max(...lines.map(cells => cells[column]?.length ?? 0)),
  )
  const table = lines.map(cells =>
    cells
      .map((cell, column) => aligned(cell, column, widths))
      .join('  ')
      .trimEnd(),
  )
  const findings = results.flatMap(({ target, seed, findings: found }) =>
    found.map(({ sentence, input }) => `${target} (seed ${seed}): ${sentence}; ${input.length} bytes`),
  )
  return [...table, ...findings.map((line, index) => `FINDING ${line} in ${kept[index]}`)]
}

function aligned(cell: string, column: number, widths: readonly number[]): string {
  const isText = HEADINGS[column] === 'target' || HEADINGS[column] === 'refused'
  return isText ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0)
}

function cellsOf(result: TargetResult): string[] {
  const refused = Object.entries(result.refused).map(([code, count]) => `${code} ${count}`)
  return [
    result.target,
    `${result.inputs}`,
    (result.inputs / result.seconds).toFixed(0),
    `${result.accepted}`,
    refused.join(', ') || '-',
    `${result.signals}`,
    `${result.slowestMs.toFixed(1)} ms`,
    `${result.findings.length}`,
  ]
}
