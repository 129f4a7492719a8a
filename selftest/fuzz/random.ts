// Owns the only source of chance in a fuzz run: the same seed gives the same inputs on every machine.
// Must never be used for anything that has to be unguessable.
// Source: sfc32 of PractRand (C. Doty-Humphrey), seeded by splitmix32.

export class Random {
  #a: number
  #b: number
  #c: number
  #counter = 1

  constructor(seed: number) {
    let state = seed >>> 0
    const next = (): number => {
      state = (state + 0x9e3779b9) >>> 0
      let mixed = Math.imul(state ^ (state >>> 16), 0x85ebca6b)
      mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35)
      return (mixed ^ (mixed >>> 16)) >>> 0
    }
    this.#a = next()
    this.#b = next()
    this.#c = next()
  }

  /** 0..2^32-1. */
  next(): number {
    const sum = (this.#a + this.#b + this.#counter) >>> 0
    this.#counter = (this.#counter + 1) >>> 0
    this.#a = (this.#b ^ (this.#b >>> 9)) >>> 0
    this.#b = (this.#c + (this.#c << 3)) >>> 0
    this.#c = (((this.#c << 21) | (this.#c >>> 11)) + sum) >>> 0
    return sum
  }

  /** 0..bound-1; 0 for a bound below 1. */
  below(bound: number): number {
    return bound < 1 ? 0 : Math.floor((this.next() / 4_294_967_296) * bound)
  }

  /** True once in so many. */
  once(inSoMany: number): boolean {
    return this.below(inSoMany) === 0
  }

  pick<T>(items: readonly T[]): T {
    if (items.length === 0) throw new RangeError('"items" expected 1 or more, got 0')
    return items[this.below(items.length)] as T
  }

  bytes(length: number): Uint8Array {
    return Uint8Array.from({ length }, () => this.next() & 255)
  }
}

/** A seed that depends on every byte: choices of a check that must be the same when the input is replayed. */
export function seedOf(bytes: Uint8Array): number {
  let hash = 0x811c9dc5
  for (const byte of bytes) hash = Math.imul(hash ^ byte, 0x01000193)
  return hash >>> 0
}
