// Owns: how many bytes of frames may be buffered before anybody is authenticated, over all connections together.
// Must never: admit a frame that could not be finished: its whole length is reserved, so that many half-sent
// frames cannot block each other until their deadlines. Nor let one uid that announces and stays silent keep the
// others out: small frames never wait, larger ones of one uid take a quarter at most, and uids take turns.
import {
  LARGE_FRAME_BYTES,
  MAXIMUM_PREAUTHENTICATION_BYTES,
  MAXIMUM_REQUEST_FRAME_BYTES,
} from '../protocol/limits.js'

/** Questions of status, a revocation: what must be heard in any crowd. */
const SMALL_FRAME_BYTES = 8 * 1024
/** As many connections as a listener holds, each with one small frame. */
const MAXIMUM_SMALL_FRAMES = 256
/** What is left for ordinary frames beside one large frame of the greatest size and all small ones. */
const ORDINARY_BYTES =
  MAXIMUM_PREAUTHENTICATION_BYTES - MAXIMUM_REQUEST_FRAME_BYTES - MAXIMUM_SMALL_FRAMES * SMALL_FRAME_BYTES
const ORDINARY_BYTES_PER_UID = ORDINARY_BYTES / 4

export interface Admission {
  readonly admitted: boolean
  /** Gives the place back, or leaves the queue. Safe to repeat. */
  release(): void
}

/** Where the frames of one uid ask for room. */
export interface AdmissionDoor {
  /** Asks for room; when there is none at once, `onAdmitted` is called when it is this frame's turn. */
  enter(frameBytes: number, onAdmitted: () => void): Admission
}

interface Place extends Admission {
  admitted: boolean
  readonly uid: number
  readonly size: number
  readonly onAdmitted: () => void
}

interface RoomSize {
  readonly capacity: number
  readonly capacityPerUid: number
}

/** Room for a number of bytes. Uids take turns; within one, and against what does not fit, the order stands. */
class Room {
  readonly #size: RoomSize
  readonly #queue: Place[] = []
  readonly #heldBy = new Map<number, number>()
  /** When a uid was last admitted, as a count of admissions. */
  readonly #lastTurns = new Map<number, number>()
  #turns = 0
  #held = 0

  constructor(size: RoomSize) {
    this.#size = size
  }

  get held(): number {
    return this.#held
  }

  enter(wanted: Pick<Place, 'uid' | 'size' | 'onAdmitted'>): Admission {
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
    this.#admitWaiting(undefined)
  }

  #hold({ uid }: Place, change: number): void {
    this.#held += change
    this.#heldBy.set(uid, (this.#heldBy.get(uid) ?? 0) + change)
  }

  /** The one who is entering now learns it from `admitted`, not by a call back into its own constructor. */
  #admitWaiting(entering: Place | undefined): void {
    for (;;) {
      const next = this.#next()
      if (next === undefined || this.#held + next.size > this.#size.capacity) return
      this.#queue.splice(this.#queue.indexOf(next), 1)
      this.#hold(next, next.size)
      this.#lastTurns.set(next.uid, (this.#turns += 1))
      next.admitted = true
      if (next !== entering) next.onAdmitted()
    }
  }

  /** Of those within their uid's part, the first of the uid whose turn is longest ago. */
  #next(): Place | undefined {
    const turnOf = ({ uid }: Place): number => this.#lastTurns.get(uid) ?? 0
    return this.#queue
      .filter(({ uid, size }) => (this.#heldBy.get(uid) ?? 0) + size <= this.#size.capacityPerUid)
      .reduce<Place | undefined>(
        (best, place) => (best === undefined || turnOf(place) < turnOf(best) ? place : best),
        undefined,
      )
  }
}

/** One for all connections of a listener. */
export class FrameAdmission {
  readonly #small = new Room(sameForAll(MAXIMUM_SMALL_FRAMES * SMALL_FRAME_BYTES))
  readonly #ordinary = new Room({ capacity: ORDINARY_BYTES, capacityPerUid: ORDINARY_BYTES_PER_UID })
  /** Counted in frames: one at a time, whatever its length. */
  readonly #large = new Room(sameForAll(1))

  /** The door of one uid. */
  of(uid: number): AdmissionDoor {
    return { enter: (frameBytes, onAdmitted) => this.#enter(frameBytes, onAdmitted, uid) }
  }

  #enter(frameBytes: number, onAdmitted: () => void, uid: number): Admission {
    if (frameBytes > MAXIMUM_REQUEST_FRAME_BYTES) {
      throw new RangeError(
        `frame admission: expected at most ${MAXIMUM_REQUEST_FRAME_BYTES} bytes, got ${frameBytes}`,
      )
    }
    if (frameBytes > LARGE_FRAME_BYTES) return this.#large.enter({ uid, size: 1, onAdmitted })
    const room = frameBytes > SMALL_FRAME_BYTES ? this.#ordinary : this.#small
    return room.enter({ uid, size: frameBytes, onAdmitted })
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
  return { capacity, capacityPerUid: capacity }
}
