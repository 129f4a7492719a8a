// Owns: how many bytes of frames may be buffered before anybody is authenticated, over all connections together.
// Must never: admit a frame that could not be finished: its whole length is reserved, so that many half-sent
// frames cannot block each other until their deadlines.
import {
  LARGE_FRAME_BYTES,
  MAXIMUM_PREAUTHENTICATION_BYTES,
  MAXIMUM_REQUEST_FRAME_BYTES,
} from '../protocol/limits.js'

/** What is left for ordinary frames while one large frame of the greatest size is held. */
const ORDINARY_BYTES = MAXIMUM_PREAUTHENTICATION_BYTES - MAXIMUM_REQUEST_FRAME_BYTES

export interface Admission {
  readonly admitted: boolean
  /** Gives the place back, or leaves the queue. Safe to repeat. */
  release(): void
}

interface Place extends Admission {
  admitted: boolean
  readonly frameBytes: number
  readonly onAdmitted: () => void
}

/** Room for a number of bytes, given out strictly in order. */
class Room {
  readonly #capacityBytes: number
  readonly #queue: Place[] = []
  #heldBytes = 0

  constructor(capacityBytes: number) {
    this.#capacityBytes = capacityBytes
  }

  get heldBytes(): number {
    return this.#heldBytes
  }

  enter(frameBytes: number, onAdmitted: () => void): Admission {
    let released = false
    const place: Place = {
      admitted: false,
      frameBytes,
      onAdmitted,
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
    if (place.admitted) this.#heldBytes -= place.frameBytes
    else this.#queue.splice(this.#queue.indexOf(place), 1)
    this.#admitWaiting(undefined)
  }

  /** The one who is entering now learns it from `admitted`, not by a call back into its own constructor. */
  #admitWaiting(entering: Place | undefined): void {
    for (;;) {
      const head = this.#queue[0]
      if (head === undefined || this.#heldBytes + head.frameBytes > this.#capacityBytes) return
      this.#queue.shift()
      this.#heldBytes += head.frameBytes
      head.admitted = true
      if (head !== entering) head.onAdmitted()
    }
  }
}

/** One for all listeners of a daemon. */
export class FrameAdmission {
  readonly #ordinary = new Room(ORDINARY_BYTES)
  /** Counted in frames: one at a time, whatever its length. */
  readonly #large = new Room(1)

  /** Asks for room; when there is none at once, `onAdmitted` is called when it is this frame's turn. */
  enter(frameBytes: number, onAdmitted: () => void): Admission {
    if (frameBytes > MAXIMUM_REQUEST_FRAME_BYTES) {
      throw new RangeError(
        `frame admission: expected at most ${MAXIMUM_REQUEST_FRAME_BYTES} bytes, got ${frameBytes}`,
      )
    }
    if (frameBytes > LARGE_FRAME_BYTES) return this.#large.enter(1, onAdmitted)
    return this.#ordinary.enter(frameBytes, onAdmitted)
  }

  /** For status: bytes of ordinary frames, and whether a large one is held. */
  get held(): { readonly ordinaryBytes: number; readonly largeFrames: number } {
    return { ordinaryBytes: this.#ordinary.heldBytes, largeFrames: this.#large.heldBytes }
  }
}
