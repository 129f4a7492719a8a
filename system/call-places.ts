// Owns: how many calls of one uid and of one connecting process are under way at once.
// Must never: count what administers or only looks: those are heard in any crowd.
// Source: a call that waits (for a record, for the disk) keeps its connection; they must not keep all of them.
import { MAXIMUM_CALLS_PER_CONNECTOR, MAXIMUM_CALLS_PER_UID } from '../protocol/limits.js'
import type { PeerIdentity } from './peer.js'

type Connector = Pick<PeerIdentity, 'pid' | 'uid'>
/** Gives the place back. Safe to repeat. */
export type LeaveCall = () => void

interface Waiting {
  readonly caller: Connector
  admit(leave: LeaveCall): void
}

export class CallPlaces {
  readonly #calls = new Set<Connector>()
  readonly #queue: Waiting[] = []

  /** @returns how to leave, or undefined when the caller has as many under way as it may. */
  enter({ pid, uid }: Connector): LeaveCall | undefined {
    const call = { pid, uid }
    if (!this.#hasRoomFor(call)) return undefined
    this.#calls.add(call)
    return () => {
      if (this.#calls.delete(call)) this.#admitWaiting()
    }
  }

  /** Waits for a place, in order, where the conversation goes on anyway. */
  async turn(caller: Connector): Promise<LeaveCall> {
    const leave = this.enter(caller)
    if (leave !== undefined) return leave
    return new Promise(admit => {
      this.#queue.push({ caller, admit })
    })
  }

  #hasRoomFor({ pid, uid }: Connector): boolean {
    const ofUid = [...this.#calls].filter(call => call.uid === uid)
    const ofConnector = ofUid.filter(call => call.pid === pid)
    return ofUid.length < MAXIMUM_CALLS_PER_UID && ofConnector.length < MAXIMUM_CALLS_PER_CONNECTOR
  }

  #admitWaiting(): void {
    const index = this.#queue.findIndex(({ caller }) => this.#hasRoomFor(caller))
    const next = this.#queue[index]
    if (next === undefined) return
    this.#queue.splice(index, 1)
    const leave = this.enter(next.caller)
    if (leave !== undefined) next.admit(leave)
  }
}
