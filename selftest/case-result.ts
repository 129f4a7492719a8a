// What one shipped case reports: a line for an operator, a member of one JSON document for a machine.

/** How a case ended at the broker. */
export type CaseEnding = 'client_fault' | 'declined_preparation' | 'executed' | 'refused_binding'

export interface CaseResult {
  readonly name: string
  readonly ok: boolean
  readonly ending: CaseEnding
  readonly ms: number
  /** What was proved, or what was found instead. */
  readonly proved: string
}

/** A finding that ends a case as failed. */
export class CaseFailure extends Error {}

/** Fails the case with expected and got unless the two are equal. */
export function expectEqual(what: string, expected: unknown, got: unknown): void {
  if (JSON.stringify(expected) === JSON.stringify(got)) return
  throw new CaseFailure(`${what}: expected ${JSON.stringify(expected)}, got ${JSON.stringify(got)}`)
}

/** Fails the case unless a number is at most its bound. */
export function expectAtMost(what: string, bound: number, got: number): void {
  if (got <= bound) return
  throw new CaseFailure(`${what}: expected at most ${bound}, got ${got.toFixed(1)}`)
}
