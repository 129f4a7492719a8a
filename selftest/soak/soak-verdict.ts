// Owns the end of a soak: every request that was ordered or that arrived, with what each owner has on disk and what
// its host was told; and the counts of all of it.
// Must never: judge by anything but the provider's count, the stored records and the hosts' words.
import { type OperationEntry, violationsOf } from '../crash/records.js'
import { untruthsOf } from '../crash/told.js'
import type { LoadRun } from './load.js'
import type { StoredRecords } from './stored-records.js'

export interface Evidence {
  /** Whole requests by body. */
  readonly hits: ReadonlyMap<string, number>
  readonly records: StoredRecords
  readonly runs: readonly LoadRun[]
}

export interface Judged {
  readonly runs: Readonly<Record<string, number>>
  readonly told: Readonly<Record<string, number>>
  readonly attempts: Readonly<Record<string, number>>
  readonly operations: Readonly<Record<string, number>>
  readonly violations: readonly string[]
}

/** @param digestOf what relates the operations of a body to it. */
export function judge({ hits, records, runs }: Evidence, digestOf: (body: string) => string): Judged {
  const entries = byDigest(records.entries)
  const toldOf = new Map(runs.map(({ body, told }) => [body, told]))
  const bodies = new Set([...hits.keys(), ...toldOf.keys()])
  const violations = [
    ...records.strays.map(operationId => `operation ${operationId}: an attempt that no kernel asked for`),
    ...records.entries.filter(({ isSettled }) => !isSettled).map(unsettled),
    ...[...bodies].flatMap(body => {
      const ledger = { hits: hits.get(body) ?? 0, entries: entries.get(digestOf(body)) ?? [] }
      const told = toldOf.get(body)
      const found = [...violationsOf(ledger), ...(told === undefined ? [] : untruthsOf(told, ledger))]
      return found.map(sentence => `request ${body}: ${sentence}`)
    }),
  ]
  return {
    runs: countsOf(runs.map(({ way }) => way)),
    told: countsOf(runs.map(({ told }) => (told === undefined ? 'host died' : wordOf(told)))),
    attempts: countsOf(records.entries.map(({ attempt }) => attemptWord(attempt))),
    operations: countsOf(records.entries.map(({ state }) => state)),
    violations,
  }
}

function byDigest(entries: readonly OperationEntry[]): Map<string, OperationEntry[]> {
  const found = new Map<string, OperationEntry[]>()
  for (const entry of entries) {
    const same = found.get(entry.requestDigest)
    if (same === undefined) found.set(entry.requestDigest, [entry])
    else same.push(entry)
  }
  return found
}

function unsettled({ operationId, state }: OperationEntry): string {
  return `operation ${operationId}: still ${state}`
}

function attemptWord({ reason, state }: OperationEntry['attempt']): string {
  return reason === null ? state : `${state}: ${reason}`
}

function wordOf({ code, outcome }: { readonly code: string | null; readonly outcome: string }): string {
  return code === null ? outcome : `${outcome}: ${code}`
}

function countsOf(names: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const name of [...names].sort()) counts[name] = (counts[name] ?? 0) + 1
  return counts
}
