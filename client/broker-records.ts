// What a kernel asks of its broker: the recorded outcome of an attempt, its release, its status. Every
// answer is a word about the record; from a broker that does not answer nothing is learned.
import { type Clock, NS_PER_MS } from '../protocol/clock.js'
import { isBrokerError } from '../protocol/errors.js'
import type { BrokerExecuteRequest } from '../protocol/execute-request.js'
import type { BrokerExecuteResponse } from '../protocol/execute-response.js'
import type { BrokerRecord } from '../protocol/kernel-rpc.js'
import type { AttemptRegistration, SignedRegisterAttemptAuthorization } from '../protocol/registration.js'
import type { AttemptStatus } from '../protocol/status.js'
import { BrokerClient } from './broker-client.js'
import type { BrokerPins } from './broker-pins.js'
import { readOutcome } from './outcome.js'

/** An attempt that its asker retained: registration and exact request. */
interface RetainedAttempt {
  readonly registration: AttemptRegistration
  readonly request: BrokerExecuteRequest
}

type Unanswered = 'refused' | 'unknown' | 'unreachable'

/** Fills the kernel's port from one broker. */
export class BrokerRecordsClient {
  readonly #broker: BrokerClient
  readonly #clock: Clock

  constructor(pins: BrokerPins, clock: Clock) {
    this.#broker = new BrokerClient(pins, clock)
    this.#clock = clock
  }

  /** The verified recorded outcome; `pending` while nothing ended the attempt, `refused` when it does not verify. */
  async replay(
    attempt: RetainedAttempt,
    deadlineBootNs: bigint,
  ): Promise<BrokerRecord | 'pending' | Unanswered> {
    const context = { ...attempt, receiptSigner: this.#broker.pins.receiptKey }
    return accepted(async () => {
      const outcome = await readOutcome(this.#broker, context, this.#leftMs(deadlineBootNs))
      switch (outcome.kind) {
        case 'response':
          return { kind: 'receipt', receipt: outcome.response.receipt }
        case 'failure':
          return { kind: 'failure', failure: outcome.failure }
        case 'attempt_pending':
          return 'pending'
        case 'attempt_unknown':
          return 'unknown'
      }
    })
  }

  /** The recorded response with its output, verified; `none` for an attempt that has no response. */
  async output(
    attempt: RetainedAttempt,
    deadlineBootNs: bigint,
  ): Promise<BrokerExecuteResponse | 'none' | Unanswered> {
    const context = { ...attempt, receiptSigner: this.#broker.pins.receiptKey }
    return accepted(async () => {
      const outcome = await readOutcome(this.#broker, context, this.#leftMs(deadlineBootNs))
      if (outcome.kind === 'response') return outcome.response
      return outcome.kind === 'attempt_unknown' ? 'unknown' : 'none'
    })
  }

  /**
   * Releases an attempt that was not dispatched; `conflict` says that its outcome must be read, `refused` that the
   * broker does not take the authorization: another key, or a clock too far from ours.
   */
  async release(
    attempt: RetainedAttempt,
    authorization: SignedRegisterAttemptAuthorization,
    deadlineBootNs: bigint,
  ): Promise<'released' | 'conflict' | Unanswered> {
    return accepted(async () => {
      try {
        await this.#broker.release({ ...attempt, authorization }, this.#leftMs(deadlineBootNs))
        return 'released'
      } catch (error) {
        if (isBrokerError(error) && error.code === 'conflict') return 'conflict'
        if (isBrokerError(error) && error.code === 'attempt_unknown') return 'unknown'
        throw error
      }
    })
  }

  async attemptStatus(attemptId: string, deadlineBootNs: bigint): Promise<AttemptStatus | Unanswered> {
    return accepted(async () => {
      try {
        return await this.#broker.attemptStatus(attemptId, this.#leftMs(deadlineBootNs))
      } catch (error) {
        if (isBrokerError(error) && error.code === 'attempt_unknown') return 'unknown'
        throw error
      }
    })
  }

  /** Asks for the slot, which every broker has: nothing is looked for, and nothing is refused. */
  async isReachable(deadlineBootNs: bigint): Promise<boolean> {
    const slot = await answered(() => this.#broker.slotStatus(this.#leftMs(deadlineBootNs)))
    return slot !== 'unreachable'
  }

  #leftMs(deadlineBootNs: bigint): number {
    return Math.max(1, Number((deadlineBootNs - this.#clock.bootNs()) / NS_PER_MS))
  }
}

/** A broker that was reached, and one of the two did not accept what the other said. */
const NOT_ACCEPTED: ReadonlySet<string> = new Set(['authorization_denied', 'invalid_request'])

function accepted<T>(ask: () => Promise<T>): Promise<T | 'refused' | 'unreachable'> {
  return answered(async () => {
    try {
      return await ask()
    } catch (error) {
      if (isBrokerError(error) && NOT_ACCEPTED.has(error.code)) return 'refused'
      throw error
    }
  })
}

/** A broker whose answer did not come said nothing. */
async function answered<T>(ask: () => Promise<T>): Promise<T | 'unreachable'> {
  try {
    return await ask()
  } catch (error) {
    if (isBrokerError(error)) return 'unreachable'
    throw error
  }
}
