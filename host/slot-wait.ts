// Waits for a held slot. Each try is a preparation of its own on a connection of its own; only a
// `conflict` (decided before the broker claimed anything) is tried again, and only within the caller's budget.
import { setTimeout as sleep } from 'node:timers/promises'
import { deadlineAfter } from '../system/deadline.js'
import { type Preparation, prepareDispatchConnection } from '../client/prepare.js'
import type { Clock } from '../protocol/clock.js'
import { BrokerError, isBrokerError } from '../protocol/errors.js'
import { type AdmittedOperation, authorize, type ReservedOperation } from './admission.js'
import { backOffSentence, explainedDecline } from './decline.js'
import type { HostSession } from './session.js'

const PAUSE_MS = 50
/** What is left of a reservation must be enough to start the operation once its slot is free. */
const START_MARGIN_MS = 2_000

/** How long a caller waits for the slot, fixed when the run begins. */
export class SlotWait {
  readonly #clock: Clock
  readonly #deadlineBootNs: bigint

  constructor(clock: Clock, waitMs: number) {
    this.#clock = clock
    this.#deadlineBootNs = deadlineAfter(clock, waitMs)
  }

  get isOver(): boolean {
    return this.#clock.bootNs() >= this.#deadlineBootNs
  }

  /** Whether a run may reserve anew after this refusal. */
  goesOnAfter(error: unknown): boolean {
    return isHeld(error) && !this.isOver
  }

  /** Between two reservations, as between two tries under one. */
  async pause(): Promise<void> {
    await sleep(PAUSE_MS)
  }

  /** The end of the wait under one reservation, whose execution nonce expires while others hold the slot. */
  deadlineUnder({ reserved }: ReservedOperation): bigint {
    const leftMs = reserved.executionNonce.nonce.expires_at * 1_000 - this.#clock.unixMs() - START_MARGIN_MS
    const underReservation = deadlineAfter(this.#clock, Math.max(leftMs, 0))
    return underReservation < this.#deadlineBootNs ? underReservation : this.#deadlineBootNs
  }
}

/**
 * Prepares the stream of a registered attempt, waiting for a slot that is held as long as its reservation permits.
 * @throws BrokerError `conflict` when it is still held then.
 */
export async function prepareWithin(
  session: HostSession,
  reservation: ReservedOperation,
  admitted: AdmittedOperation,
  wait: SlotWait,
): Promise<Preparation> {
  const deadlineBootNs = wait.deadlineUnder(reservation)
  let attempt = admitted.prepare
  for (;;) {
    try {
      return await prepareDispatchConnection(session.pins.broker, attempt, session.clock)
    } catch (error) {
      if (!isHeld(error)) throw await explainedDecline(session, admitted, error)
      if (session.clock.bootNs() >= deadlineBootNs) throw await slotHeld(session, admitted, error)
    }
    await sleep(PAUSE_MS)
    attempt = (await authorize(session, reservation)).prepare
  }
}

/** The decline with what the broker says of the holder: who it is and how long it can last. */
async function slotHeld(
  session: HostSession,
  admitted: AdmittedOperation,
  cause: unknown,
): Promise<BrokerError> {
  const slot = await session.broker.slotStatus().catch(() => undefined)
  const backOff = slot === undefined ? undefined : backOffSentence(slot, admitted)
  if (backOff !== undefined) return new BrokerError('conflict', backOff, { outcome: 'not_started', cause })
  const who =
    slot?.connector == null ? '' : ` by connector pid ${slot.connector.pid} uid ${slot.connector.uid}`
  const left = slot?.leftMs == null ? '' : `, at most ${slot.leftMs} ms more`
  return new BrokerError(
    'conflict',
    `preparation declined: expected a free slot, got one held${who}${left}; wait for it: --wait 30s`,
    { outcome: 'not_started', cause },
  )
}

function isHeld(error: unknown): boolean {
  return isBrokerError(error) && error.code === 'conflict'
}
