// Owns the whole crash table: every durable boundary and every message between processes, by name.
// Must never: leave out a name that a daemon can reach, or hold one that none reaches; a run finds both.
import { BROKER_CUTPOINTS } from './broker-cutpoints.js'
import type { CutpointRow } from './cutpoint.js'
import { HOST_CUTPOINTS } from './host-cutpoints.js'
import { KERNEL_CUTPOINTS } from './kernel-cutpoints.js'

/** In the order of a run of the table: an administrator's rows need the machine's own time, so they come first. */
export const CUTPOINTS: readonly CutpointRow[] = [
  ...[...KERNEL_CUTPOINTS, ...BROKER_CUTPOINTS].filter(isAdministrative),
  ...[...KERNEL_CUTPOINTS, ...BROKER_CUTPOINTS].filter(row => !isAdministrative(row)),
  ...HOST_CUTPOINTS,
]

/** Ends that nothing depends on: what was answered changes nothing, or was changed by the row beside it. */
const ANSWERED_LOOKS = [
  'approval_list',
  'approval_show',
  'inspect',
  'list',
  'list_grants',
  'explain',
  'read_checkpoints',
  'read_log',
  'seal_log',
  'show_clock',
  'show_receipt',
  'status',
  'slot_status',
  'credential_list',
]
/** A transaction that only proves that the store can be entered. */
export const WRITES_NOTHING = ['watchdog']
const ANSWERED_ALIKE = ['kernel.capabilities.answered']

/** Whether a name that a daemon reached has its row, or is the answer to a question that changes nothing. */
export function isListed(name: string): boolean {
  if (CUTPOINTS.some(row => row.name === name) || ANSWERED_ALIKE.includes(name)) return true
  if (ANSWERED_LOOKS.some(look => name.endsWith(`.${look}.answered`))) return true
  return WRITES_NOTHING.some(commit => name.includes(`.${commit}.`))
}

/** The rows that `npm test` runs: one of each kind of boundary, and each process once. */
export const MOST_IMPORTANT: readonly string[] = [
  'kernel.reserved.after',
  'kernel.dispatch_committed.after',
  'kernel.release.told',
  'broker.acknowledged',
  'broker.dispatch_committed.before',
  'broker.dispatch_committed.after',
  'broker.completed.before',
  'broker.completed.after',
  'broker.settled_at_start.before',
  'host.start.after',
  'cage-init.armed',
  'tool.half_written',
]

function isAdministrative({ story }: CutpointRow): boolean {
  return ['announce', 'approve', 'issue', 'look', 'provision', 'revoke', 'state', 'correct', 'call'].includes(
    story,
  )
}
