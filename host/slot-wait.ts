// Waits for a held slot. Each try is a preparation of its own on a connection of its own; only a
// `conflict` (decided before the broker claimed anything) is tried again, and only within the caller's budget.
import { setTimeout as sleep } from 'node:timers/promises'
import { deadlineAfter } from '../client/deadline.js'
import { type Preparation, prepareDispatchConnection } from '../client/prepare.js'
import { isBrokerError } from '../protocol/errors.js'
import { type AdmittedOperation, authorize, type ReservedOperation } from './admission.js'
import type { HostSession } from './session.js'

const PAUSE_MS = 50

/**
 * Prepares the stream of a registered attempt, waiting at most `waitMs` for a slot that is held.
 * @throws BrokerError `conflict` when it is still held then.
 */
export async function prepareWithin(
  session: HostSession,
  reservation: ReservedOperation,
  admitted: AdmittedOperation,
  waitMs: number,
): Promise<Preparation> {
  const deadlineBootNs = deadlineAfter(session.clock, waitMs)
  let attempt = admitted.prepare
  for (;;) {
    try {
      return await prepareDispatchConnection(session.pins.broker, attempt, session.clock)
    } catch (error) {
      const held = isBrokerError(error) && error.code === 'conflict'
      if (!held || session.clock.bootNs() >= deadlineBootNs) throw error
    }
    await sleep(PAUSE_MS)
    attempt = (await authorize(session, reservation)).prepare
  }
}
