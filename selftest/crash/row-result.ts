// Owns what one row of the crash table came to, and its judgement against what its phase permits.
// Must never: pass a row whose cutpoint was not reached.
import { type CutpointRow, PHASES } from './cutpoint.js'
import { type OperationEntry, type RequestLedger, violationsOf } from './records.js'
import { type Told, untruthsOf } from './told.js'

export interface RowResult {
  readonly name: string
  readonly who: string
  readonly what: string
  readonly hits: number
  readonly attempt: string
  readonly operation: string
  /** Exit code and outcome; `died` for a host that was killed, `-` where nobody asked. */
  readonly told: string
  /** Whether the process ended at its moment; nothing is judged by the row's phase where it did not. */
  readonly isReached: boolean
  readonly ok: boolean
  /** What does not hold, a sentence each. */
  readonly violations: readonly string[]
}

/** What was seen of a row. `told`: undefined for a host that died. */
export interface RowSeen {
  readonly isReached: boolean
  readonly told: Told | undefined
  /** As soon as everything runs again, and once everything is settled. */
  readonly before: RequestLedger
  readonly after: RequestLedger
  readonly others: readonly string[]
}

/** Judges a row about an operation. */
export function judgeRow(row: CutpointRow, seen: RowSeen): RowResult {
  const { after, before, told } = seen
  const [entry] = after.entries
  const result = {
    hits: after.hits,
    attempt: entry?.attempt.state ?? 'none',
    operation: entry?.state ?? 'none',
    told: told === undefined ? 'died' : `${told.exitCode} ${told.outcome}`,
  }
  return rowResult(row, { ...result, isReached: seen.isReached }, [
    ...seen.others,
    ...(seen.isReached ? phaseViolations(row, result, told?.outcome ?? 'died') : []),
    ...changes(before, after),
    ...violationsOf(after),
    ...after.entries.filter(({ isSettled }) => !isSettled).map(({ state }) => `the operation stays ${state}`),
    ...(told === undefined ? [] : untruthsOf(told, after)),
  ])
}

/** Judges a row in which an administrator asked, or somebody looked. */
export function judgeAdministered(
  row: CutpointRow,
  { told, isReached, isDone }: { readonly told: Told; readonly isReached: boolean; readonly isDone: boolean },
): RowResult {
  const operation = isDone ? 'changed once' : 'nothing changed'
  const result = { hits: 0, attempt: '-', operation, told: `${told.exitCode} ${told.outcome}` }
  return rowResult(row, { ...result, isReached }, isReached ? phaseViolations(row, result, told.outcome) : [])
}

type Columns = Pick<RowResult, 'attempt' | 'hits' | 'operation' | 'told'>

function rowResult(
  row: CutpointRow,
  seen: Columns & Pick<RowResult, 'isReached'>,
  violations: readonly string[],
): RowResult {
  const { name, what, who } = row
  return { name, who, what, ...seen, ok: seen.isReached && violations.length === 0, violations }
}

function phaseViolations({ phase }: CutpointRow, columns: Columns, outcome: string): string[] {
  const { attempts, hits, operations, told } = PHASES[phase]
  const checks: readonly [string, readonly (number | string)[], number | string][] = [
    ['hits', hits, columns.hits],
    ['attempt', attempts, columns.attempt],
    ['operation', operations, columns.operation],
    ['what the host was told', told, outcome],
  ]
  return checks
    .filter(([, permitted, found]) => !permitted.includes(found))
    .map(([what, permitted, found]) => `${what}: expected ${permitted.join(' or ')}, got ${found}`)
}

/** After a restart the attempt says what is known; settling takes nothing of it back, and sends nothing. */
function changes(before: RequestLedger, after: RequestLedger): string[] {
  const ended = before.entries.filter(({ attempt }) => isEnded(attempt.state))
  return [
    ...(after.hits === before.hits ? [] : [`settling: ${before.hits} hits became ${after.hits}`]),
    ...ended.flatMap(entry => changed(entry, after.entries)),
  ]
}

function changed({ attempt, operationId }: OperationEntry, after: readonly OperationEntry[]): string[] {
  const later = after.find(entry => entry.operationId === operationId)?.attempt.state ?? 'none'
  return later === attempt.state ? [] : [`settling: attempt ${attempt.state} became ${later}`]
}

function isEnded(state: string): boolean {
  return state === 'failed' || state === 'completed' || state === 'unknown_outcome'
}
