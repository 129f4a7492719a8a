// One line of the doctor: what was looked at, how it is judged, what was found, what to do. A judging function
// takes found values and looks at nothing itself, so that a test can show each of its verdicts.

/** `missing`: the main job cannot run here. `weaker`: it runs, and protects or keeps less. */
export type Verdict = 'ok' | 'weaker' | 'missing'

export interface Check {
  readonly name: string
  readonly verdict: Verdict
  readonly found: string
  /** What to do, several lines where a file is to be written; null when there is nothing to do. */
  readonly remedy: string | null
}

export function ok(name: string, found: string, remedy: string | null = null): Check {
  return { name, verdict: 'ok', found, remedy }
}

export function weaker(name: string, found: string, remedy: string): Check {
  return { name, verdict: 'weaker', found, remedy }
}

export function missing(name: string, found: string, remedy: string): Check {
  return { name, verdict: 'missing', found, remedy }
}

/** Whether the main job can run on this machine, as this user. */
export function isFit(checks: readonly Check[]): boolean {
  return checks.every(({ verdict }) => verdict !== 'missing')
}
