// Owns what a soak and a flat run look like on a terminal.
// Must never: leave a violation out.
import type { FlatReport } from './flat-run.js'
import type { Counts, SoakReport } from './soak-run.js'

const MEBIBYTE = 1024 * 1024

/** @returns the lines of a soak. */
export function soakTable(report: SoakReport): string[] {
  const { answers, attempts, faults, hits, operations, runs, seconds, seed, told, violations } = report
  return [
    `seed ${seed}, ${seconds} s, ${sum(runs)} runs, ${sum(faults)} faults, ${hits} hits`,
    ...section('runs', runs),
    ...section('faults', faults),
    ...section('the provider', answers),
    ...section('hosts were told', told),
    ...section('attempts on disk', attempts),
    ...section('operations on disk', operations),
    ...verdict(violations, 'no hit without a record, none twice, every record settled and consistent'),
  ]
}

/** @returns the lines of a flat run. */
export function flatTable({ count, hits, rows, seconds, violations }: FlatReport): string[] {
  return [
    `${count} executions and ${count} refusals, ${hits} hits, ${seconds} s; from the end of the warm-up to the end`,
    `${'phase'.padEnd(10)}${'process'.padEnd(9)}${'descriptors'.padEnd(14)}${'handles'.padEnd(10)}${'heap MiB'.padEnd(18)}rss MiB`,
    ...rows.map(({ first, last, phase, process }) =>
      [
        phase.padEnd(10),
        process.padEnd(9),
        `${first.descriptors} -> ${last.descriptors}`.padEnd(14),
        `${first.handles} -> ${last.handles}`.padEnd(10),
        `${mebibytes(first.heapBytes)} -> ${mebibytes(last.heapBytes)}`.padEnd(18),
        `${mebibytes(first.rssBytes)} -> ${mebibytes(last.rssBytes)}`,
      ].join(''),
    ),
    ...verdict(violations, 'descriptors, handles and memory are flat'),
  ]
}

function section(title: string, counts: Counts): string[] {
  return [
    '',
    title,
    ...Object.entries(counts).map(([name, count]) => `${String(count).padStart(8)}  ${name}`),
  ]
}

function verdict(violations: readonly string[], holds: string): string[] {
  return ['', ...(violations.length === 0 ? [`ok: ${holds}`] : violations.map(one => `VIOLATION: ${one}`))]
}

function sum(counts: Counts): number {
  return Object.values(counts).reduce((total, count) => total + count, 0)
}

function mebibytes(bytes: number): string {
  return (bytes / MEBIBYTE).toFixed(1)
}
