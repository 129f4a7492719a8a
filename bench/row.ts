// Owns the shape of a row: what is compared, the goal, how it is measured, and the figures that come of it.
// Must never: hold a goal that could not be missed, or call a row met that has nothing to compare with.
import type { Interleaved } from './interleave.js'
import type { Lab } from './lab.js'
import { rounded, type Summary, summarise } from './statistics.js'

/** What a goal judges: both sides where both were measured. */
export interface Judged {
  readonly ours: Summary
  readonly theirs: Summary | null
  /** Median of ours over median of theirs. */
  readonly ratio: number | null
}

export interface Goal {
  readonly text: string
  /** null: it cannot be judged without the other side. */
  met(judged: Judged): boolean | null
}

export interface Measured extends Interleaved {
  /** What was done on both sides, and why theirs is missing where it is. */
  readonly note: string
  /** Set where the row judges by more than its medians. */
  readonly met?: boolean
}

export interface BenchRow {
  readonly id: string
  readonly ours: string
  readonly theirs: string
  readonly unit: string
  readonly goal: Goal
  /** Enough for a steady median on a quiet machine. */
  readonly rounds: number
  measure(lab: Lab, rounds: number): Promise<Measured>
}

/** A row as it is reported. */
export interface RowResult {
  readonly id: string
  readonly ours: Summary | null
  readonly theirs: Summary | null
  readonly ratio: number | null
  readonly goal: string
  readonly met: boolean | null
  readonly note: string
}

export function ratioAtMost(limit: number, text: string): Goal {
  return { text, met: ({ ratio }) => (ratio === null ? null : ratio <= limit) }
}

export function oursJudged(text: string, met: (ours: Summary) => boolean): Goal {
  return { text, met: ({ ours }) => met(ours) }
}

export function resultOf(row: BenchRow, measured: Measured): RowResult {
  const ours = summarise(row.unit, measured.ours)
  const theirs = summarise(row.unit, measured.theirs)
  const ratio = ours === null || theirs === null ? null : rounded(ours.p50 / theirs.p50)
  const met = measured.met ?? (ours === null ? null : row.goal.met({ ours, theirs, ratio }))
  return { id: row.id, ours, theirs, ratio, goal: row.goal.text, met, note: measured.note }
}

/** A row that could not be measured here says why, and is not met. */
export function unmeasured(row: BenchRow, reason: string): RowResult {
  return { id: row.id, ours: null, theirs: null, ratio: null, goal: row.goal.text, met: null, note: reason }
}
