// Owns the wait of a replay: for an attempt that is held, executing or on its way to the disk, at most to its
// governing deadline and one second more.
// Must never: outlive the connection that asked.
import type { FramedConnection } from '../system/framed-connection.js'
import { hasPassed } from '../system/deadline.js'
import { bootNsAfter } from './deadline.js'
import type { BrokerParts } from './parts.js'
import { within } from './within.js'

const GRACE_MS = 1_000
const GRACE_NS = 1_000_000_000n

export async function untilEnded(
  parts: BrokerParts,
  attemptId: string,
  connection: FramedConnection,
): Promise<void> {
  const { clock, desk, recorder } = parts
  for (;;) {
    const holder = desk.heldBy(attemptId)
    if (holder === undefined || connection.ending !== undefined) break
    // A dispatch commit meanwhile gives another deadline, so the moment is read anew each time.
    const latestBootNs = holder.governingBootNs + GRACE_NS
    if (hasPassed(clock, latestBootNs)) return
    await Promise.race([within(holder.settled, clock, latestBootNs), connection.ended])
  }
  const pending = recorder.pendingOf(attemptId)
  if (pending !== undefined) await within(pending, clock, bootNsAfter(clock, GRACE_MS)).catch(() => undefined)
}
