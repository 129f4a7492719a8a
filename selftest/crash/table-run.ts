// Owns a run of the crash table on one installation: for each row the story, the kill at its moment, the restart, the
// wait until everything is settled, and the judgement.
// Must never: go on with a daemon that is dead, or let one row's violation hide the next.
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { isBrokerError } from '../../protocol/errors.js'
import { admitPublicKey, type PublicKey } from '../../protocol/keys.js'
import type { DaemonRole } from '../daemon-commands.js'
import { administered } from './administered.js'
import { CrashWorld, SETTLED_AFTER_MS } from './crash-world.js'
import type { CutpointRow } from './cutpoint.js'
import { isListed } from './cutpoints.js'
import { HostPool } from './host-pool.js'
import { hostRow } from './host-rows.js'
import { logFaults } from './log-faults.js'
import type { RequestLedger } from './records.js'
import { judgeAdministered, judgeRow, type RowResult } from './row-result.js'
import {
  leaveRecorded,
  leaveRegistered,
  leaveUnregistered,
  reserveAndCancel,
  runBeside,
  runOnce,
  runUnanswered,
} from './stories.js'
import type { Told } from './told.js'

export const TABLE_SCHEMA = 'chio.crash-table.v1'

/** Waits for a condition, not for a time: long enough for any machine. */
const DEATH_WITHIN_MS = 30_000
const SLOT_WITHIN_MS = 30_000
const SETTLED_WITHIN_MS = 120_000

/** Tells the rows one after the other. @returns names that a daemon reached and no row has. */
export async function runTable(
  rows: readonly CutpointRow[],
  onResult: (result: RowResult) => void,
): Promise<string[]> {
  const world = await CrashWorld.open()
  const hosts = new HostPool(world.trial.layout.state)
  try {
    await world.steerAhead(0)
    for (const row of rows) onResult(await told(world, hosts, row))
    return [...world.reached].filter(name => !isListed(name)).sort()
  } finally {
    await hosts.close()
    await world.close()
  }
}

/** A story that a busy machine led elsewhere is told once more; what it broke on the way counts all the same. */
async function told(world: CrashWorld, hosts: HostPool, row: CutpointRow): Promise<RowResult> {
  const first = await tellRow(world, hosts, { row, body: JSON.stringify({ row: row.name }) })
  if (first.isReached) return first
  const second = await tellRow(world, hosts, { row, body: JSON.stringify({ again: row.name }) })
  const violations = [...first.violations, ...second.violations]
  return { ...second, violations, ok: second.ok && first.violations.length === 0 }
}

interface Telling {
  readonly row: CutpointRow
  readonly body: string
}

async function tellRow(world: CrashWorld, hosts: HostPool, { row, body }: Telling): Promise<RowResult> {
  if (row.who !== 'broker' && row.who !== 'kernel') {
    const { told, isReached } = await hostRow(world, hosts, { row, body })
    return judgeRow(row, { ...(await settledRow(world, body)), told, isReached })
  }
  const role = row.who
  switch (row.story) {
    case 'announce':
    case 'approve':
    case 'call':
    case 'correct':
    case 'issue':
    case 'look':
    case 'provision':
    case 'revoke':
    case 'state':
      return tellAdministered(world, row, role)
    default:
      return tellDaemonRow(world, { row, body }, role)
  }
}

async function tellDaemonRow(
  world: CrashWorld,
  { row, body }: Telling,
  role: DaemonRole,
): Promise<RowResult> {
  const told = await leadTo(world, row, { role, body })
  const isReached = (await hasDied(world, role)) && (await recovers(world, row, role))
  await world.steer(role)
  return judgeRow(row, { ...(await settledRow(world, body)), told, isReached })
}

/** Tells the story up to the death of the daemon. @returns what a host was told; undefined where none lives. */
async function leadTo(
  world: CrashWorld,
  { name, story }: CutpointRow,
  { role, body }: { role: DaemonRole; body: string },
): Promise<Told | undefined> {
  const daemon = world.steered(role)
  switch (story) {
    case 'registered':
    case 'recorded':
    case 'unregistered':
      await LEAVES[story](world, body)
      await daemon.endAt(name)
      await world.pass(SETTLED_AFTER_MS)
      return undefined
    case 'recovery':
      await daemon.endAt(`${role}.dispatch_committed.after`)
      return runOnce(world, body)
    default:
      await daemon.endAt(name)
      return (RUNS[story] ?? runOnce)(world, body)
  }
}

const LEAVES = {
  recorded: leaveRecorded,
  registered: leaveRegistered,
  unregistered: leaveUnregistered,
} as const

const RUNS: Partial<Record<string, (world: CrashWorld, body: string) => Promise<Told>>> = {
  cancel: reserveAndCancel,
  release: runBeside,
  unanswered: runUnanswered,
}

async function hasDied(world: CrashWorld, role: DaemonRole): Promise<boolean> {
  const ended = world.steered(role).process.ended.then(({ signal }) => signal === 'SIGKILL')
  return Promise.race([ended, sleep(DEATH_WITHIN_MS, false, { ref: false })])
}

/** The second death, in the start of the successor. */
async function recovers(world: CrashWorld, { name, story }: CutpointRow, role: DaemonRole): Promise<boolean> {
  if (story !== 'recovery') return true
  try {
    await world.steer(role, name)
    return false
  } catch (error) {
    if (isBrokerError(error)) return true
    throw error
  }
}

async function tellAdministered(world: CrashWorld, row: CutpointRow, role: DaemonRole): Promise<RowResult> {
  const asked = await administered(world, row)
  try {
    await world.steered(role).endAt(row.name)
    const told = await asked.ask()
    const isReached = await hasDied(world, role)
    await world.steer(role)
    return judgeAdministered(row, { told, isReached, isDone: await asked.isDone() })
  } finally {
    asked.close()
  }
}

function kernelKeyOf({ trial }: CrashWorld): PublicKey {
  return admitPublicKey(readFileSync(trial.layout.kernelPublicKey, 'latin1').trim(), 'kernel.pub')
}

interface SettledRow {
  readonly before: RequestLedger
  readonly after: RequestLedger
  readonly others: readonly string[]
}

/** Everything runs again: looks, lets time pass until all is due, and looks once more. */
async function settledRow(world: CrashWorld, body: string): Promise<SettledRow> {
  const isFree = await world.slotFrees(SLOT_WITHIN_MS)
  const before = await world.ledgerOf(body)
  if (before.entries.some(({ isSettled }) => !isSettled)) await world.pass(SETTLED_AFTER_MS)
  for (const { operationId } of before.entries) await world.settled(operationId, SETTLED_WITHIN_MS)
  const after = await world.ledgerOf(body)
  const faults = await logFaults(world.session.kernel, kernelKeyOf(world), after.entries)
  return { before, after, others: [...(isFree ? [] : ['the slot is not free']), ...faults] }
}
