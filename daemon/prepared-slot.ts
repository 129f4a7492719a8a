// Owns the one slot of a broker: a word that is 0 or the generation of the permit that holds it.
// Must never: be written 0 by anyone but the permit of that generation, or twice by it: a late callback of a
// finished preparation must not free its successor's slot.
// Source: the broker protocol's prepared connection slot, section 9 (compare-and-swap).

const FREE = 0
const LAST_GENERATION = 0x7fff_ffff

/** The right to hold the slot. Its release is the only writer of 0. */
export class SlotPermit {
  readonly generation: number
  readonly #word: Int32Array

  constructor(word: Int32Array, generation: number) {
    this.#word = word
    this.generation = generation
  }

  /** Whether the slot is held by exactly this permit. */
  get isHeld(): boolean {
    return Atomics.load(this.#word, 0) === this.generation
  }

  /** Frees the slot if this permit holds it. @returns whether this call freed it. */
  release(): boolean {
    return Atomics.compareExchange(this.#word, 0, this.generation, FREE) === this.generation
  }
}

export class PreparedSlot {
  readonly #word = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT))
  #lastGeneration = FREE

  get isFree(): boolean {
    return Atomics.load(this.#word, 0) === FREE
  }

  /** @returns the permit, or undefined while another one holds the slot. */
  claim(): SlotPermit | undefined {
    const generation = this.#lastGeneration === LAST_GENERATION ? 1 : this.#lastGeneration + 1
    if (Atomics.compareExchange(this.#word, 0, FREE, generation) !== FREE) return undefined
    this.#lastGeneration = generation
    return new SlotPermit(this.#word, generation)
  }
}
