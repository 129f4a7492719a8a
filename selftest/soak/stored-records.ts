// Owns the two owners' records as they are on disk in the end, joined by operation.
// Must never: leave an attempt out that belongs to no operation: that is a finding.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { type AdmissionState, isTerminalState } from '../../protocol/admission-states.js'
import type { AttemptState } from '../../protocol/attempt-states.js'
import { allowedEnvironment } from '../../system/environment.js'
import type { OperationEntry } from '../crash/records.js'
import type { DaemonRole } from '../daemon-commands.js'
import { commandLineOf } from '../daemon-process.js'
import type { Trial } from '../trial.js'

export interface StoredAttempt {
  readonly operationId: string
  readonly state: AttemptState
  readonly reason: string | null
  readonly isCommitted: boolean
}

export interface StoredOperation {
  readonly operationId: string
  readonly requestDigest: string
  readonly state: AdmissionState
}

export interface StoredRecords {
  readonly entries: readonly OperationEntry[]
  /** Operation ids of attempts that no operation asked for. */
  readonly strays: readonly string[]
}

/** Reads both stores; both daemons have ended. */
export async function storedRecords(trial: Trial): Promise<StoredRecords> {
  const attempts = (await readStore(trial, 'broker')) as StoredAttempt[]
  const operations = (await readStore(trial, 'kernel')) as StoredOperation[]
  const byOperation = new Map(attempts.map(attempt => [attempt.operationId, attempt]))
  const entries = operations.map(operation => entryOf(operation, byOperation.get(operation.operationId)))
  const known = new Set(operations.map(({ operationId }) => operationId))
  return { entries, strays: [...byOperation.keys()].filter(operationId => !known.has(operationId)) }
}

function entryOf(operation: StoredOperation, attempt: StoredAttempt | undefined): OperationEntry {
  const { isCommitted = false, reason = null, state = 'none' } = attempt ?? {}
  return {
    ...operation,
    isSettled: isTerminalState(operation.state),
    attempt: { isCommitted, reason, state, held: false },
  }
}

async function readStore(trial: Trial, role: DaemonRole): Promise<unknown[]> {
  const command = trial.command(role)
  const script = join(command.programRoot, 'dist', 'selftest', 'soak', 'records-entry.js')
  const stateDirectory = join(trial.layout.state, role)
  const [program = '', ...args] = commandLineOf(command, [script, role, stateDirectory])
  const child = spawn(program, args, {
    cwd: '/',
    env: allowedEnvironment({}),
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = once(child, 'close') as Promise<[number | null]>
  const rows: unknown[] = []
  for await (const line of createInterface({ input: child.stdout })) rows.push(JSON.parse(line))
  const [status] = await ended
  if (status !== 0)
    throw new Error(`records of the ${role}: expected status 0 of their reader, got ${status}`)
  return rows
}
