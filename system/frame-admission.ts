// Owns: how many bytes of frames may be buffered before anybody is authenticated, over all connections together.
// Must never: admit a frame that could not be finished: its whole length is reserved, so that many half-sent
// frames cannot block each other until their deadlines. Nor let one uid that announces and stays silent keep the
// others out: small frames never wait, larger ones of one uid take a quarter at most, of one process less than
// that, and uids take turns.
import {
  LARGE_FRAME_BYTES,
  MAXIMUM_PREAUTHENTICATION_BYTES,
  MAXIMUM_REQUEST_FRAME_BYTES,
} from '../protocol/limits.js'
import type { PeerIdentity } from './peer.js'

/** Questions of status, a revocation: what must be heard in any crowd. */
const SMALL_FRAME_BYTES = 8 * 1024
/** As many connections as a listener holds, each with one small frame. */
const MAXIMUM_SMALL_FRAMES = 256
/** What is left for ordinary frames beside one large frame of the greatest size and all small ones. */
const ORDINARY_BYTES =
  MAXIMUM_PREAUTHENTICATION_BYTES - MAXIMUM_REQUEST_FRAME_BYTES - MAXIMUM_SMALL_FRAMES * SMALL_FRAME_BYTES
const ORDINARY_BYTES_PER_UID = ORDINARY_BYTES / 4
/** One ordinary frame of the greatest size; the rest of its uid's part is left to other processes. */
const ORDINARY_BYTES_PER_CONNECTOR = LARGE_FRAME_BYTES

export interface Admission {
  readonly admitted: boolean
  /** Gives the place back, or leaves the queue. Safe to repeat. */
  release(): void
}

/** Whose frame it is: a process of a uid. */
export type Sender = Pick<PeerIdentity, 'pid' | 'uid'>

/** Where the frames of one connecting process ask for room. */
export interface AdmissionDoor {
  /** Asks for room; when there is none at once, `onAdmitted` is called when it is this frame's turn. */
  enter(frameBytes: number, onAdmitted: () => void): Admission
}

interface Place extends Admission {
  admitted: boolean
  readonly sender: Sender
  readonly size: number
  readonly onAdmitted: () => void
}

interface RoomSize {
  readonly capacity: number
  readonly capacityPerUid: number
  readonly capacityPerConnector: number
}

/** Room for a number of bytes. Uids take turns, and the processes of one; else, for what fits, the order stands. */
class Room {
  readonly #size: RoomSize
  readonly #queue: Place[] = []
  readonly #ofUids: Tally
  readonly #ofConnectors: Tally
  #turns = 0
  #held = 0

  constructor(size: RoomSize) {
    this.#size = size
    this.#ofUids = new Tally(size.capacityPerUid)
    this.#ofConnectors = new Tally(size.capacityPerConnector)
  }

  get held(): number {
    return this.#held
  }

  enter(wanted: Pick<Place, 'sender' | 'size' | 'onAdmitted'>): Admission {
    let released = false
    const place: Place = {
      ...wanted,
      admitted: false,
      release: () => {
        if (released) return
        released = true
        this.#leave(place)
      },
    }
    this.#queue.push(place)
    this.#admitWaiting(place)
    return place
  }

  #leave(place: Place): void {
    if (place.admitted) this.#hold(place, -place.size)
    else this.#queue.splice(this.#queue.indexOf(place), 1)
    const { pid } = place.sender
    if (!this.#queue.some(({ sender }) => sender.pid === pid)) this.#ofConnectors.forgetIdle(pid)
    this.#admitWaiting(undefined)
  }

  #hold({ sender }: Place, change: number): void {
    this.#held += change
    this.#ofUids.hold(sender.uid, change)
    this.#ofConnectors.hold(sender.pid, change)
  }

  /** The one who is entering now learns it from `admitted`, not by a call back into its own constructor. */
  #admitWaiting(entering: Place | undefined): void {
    for (;;) {
      const next = this.#next()
      if (next === undefined || this.#held + next.size > this.#size.capacity) return
      this.#queue.splice(this.#queue.indexOf(next), 1)
      this.#hold(next, next.size)
      this.#turns += 1
      this.#ofUids.tookTurn(next.sender.uid, this.#turns)
      this.#ofConnectors.tookTurn(next.sender.pid, this.#turns)
      next.admitted = true
      if (next !== entering) next.onAdmitted()
    }
  }

  /** Of those within their parts: of the uid whose turn is longest ago, of its process likewise, the first. */
  #next(): Place | undefined {
    return this.#queue
      .filter(
        ({ sender, size }) =>
          this.#ofUids.fits(sender.uid, size) && this.#ofConnectors.fits(sender.pid, size),
      )
      .reduce<Place | undefined>(
        (best, place) => (best === undefined || this.#isBefore(place.sender, best.sender) ? place : best),
        undefined,
      )
  }

  #isBefore(left: Sender, right: Sender): boolean {
    const uids = this.#ofUids.lastTurn(left.uid) - this.#ofUids.lastTurn(right.uid)
    return (
      uids < 0 ||
      (uids === 0 && this.#ofConnectors.lastTurn(left.pid) < this.#ofConnectors.lastTurn(right.pid))
    )
  }
}

/** What each uid, or each process, holds of a room, and when it was last admitted, as a count of admissions. */
class Tally {
  readonly #capacity: number
  readonly #held = new Map<number, number>()
  readonly #lastTurns = new Map<number, number>()

  constructor(capacity: number) {
    this.#capacity = capacity
  }

  fits(who: number, size: number): boolean {
    return (this.#held.get(who) ?? 0) + size <= this.#capacity
  }

  hold(who: number, change: number): void {
    this.#held.set(who, (this.#held.get(who) ?? 0) + change)
  }

  tookTurn(who: number, turn: number): void {
    this.#lastTurns.set(who, turn)
  }

  lastTurn(who: number): number {
    return this.#lastTurns.get(who) ?? 0
  }

  /** Processes come and go: what is over leaves nothing behind. */
  forgetIdle(who: number): void {
    if ((this.#held.get(who) ?? 0) > 0) return
    this.#held.delete(who)
    this.#lastTurns.delete(who)
  }
}

/** One for all connections of a listener. */
export class FrameAdmission {
  readonly #small = new Room(sameForAll(MAXIMUM_SMALL_FRAMES * SMALL_FRAME_BYTES))
  readonly #ordinary = new Room({
    capacity: ORDINARY_BYTES,
    capacityPerUid: ORDINARY_BYTES_PER_UID,
    capacityPerConnector: ORDINARY_BYTES_PER_CONNECTOR,
  })
  /** Counted in frames: one at a time, whatever its length. */
  readonly #large = new Room(sameForAll(1))

  /** The door of one connecting process. */
  of({ pid, uid }: Sender): AdmissionDoor {
    const sender = { pid, uid }
    return { enter: (frameBytes, onAdmitted) => this.#enter(frameBytes, onAdmitted, sender) }
  }

  #enter(frameBytes: number, onAdmitted: () => void, sender: Sender): Admission {
    if (frameBytes > MAXIMUM_REQUEST_FRAME_BYTES) {
      throw new RangeError(
        `frame admission: expected at most ${MAXIMUM_REQUEST_FRAME_BYTES} bytes, got ${frameBytes}`,
      )
    }
    if (frameBytes > LARGE_FRAME_BYTES) return this.#large.enter({ sender, size: 1, onAdmitted })
    const room = frameBytes > SMALL_FRAME_BYTES ? this.#ordinary : this.#small
    return room.enter({ sender, size: frameBytes, onAdmitted })
  }

  /** For status: bytes of small and ordinary frames, and whether a large one is held. */
  get held(): {
    readonly smallBytes: number
    readonly ordinaryBytes: number
    readonly largeFrames: number
  } {
    return {
      smallBytes: this.#small.held,
      ordinaryBytes: this.#ordinary.held,
      largeFrames: this.#large.held,
    }
  }
}

function sameForAll(capacity: number): RoomSize {
  return { capacity, capacityPerUid: capacity, capacityPerConnector: capacity }
}
