// Owns random numbers that come again: a run can be repeated with its seed. For arrivals and holds only.
// Must never: make a key, a nonce or an identifier.
// Source: mulberry32 (public domain); inversion of the exponential distribution.

export class SeededRandom {
  #state: number

  constructor(seed: number) {
    this.#state = seed >>> 0
  }

  /** Uniform in [0, 1). */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let mixed = this.#state
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }

  /** Exponential with this mean: the gaps of a Poisson stream of arrivals. */
  exponential(mean: number): number {
    return -mean * Math.log(1 - this.next())
  }
}
