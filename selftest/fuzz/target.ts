// Owns what a fuzz target is: where its inputs begin, how they are changed, and what must hold for every one
// of them. An input is plain bytes, so that a found case is a small file that can be replayed as it is.

import { isBrokerError } from '../../protocol/errors.js'
import type { Random } from './random.js'

/** What a reader said to one input. */
export interface Verdict {
  /** `accepted`, or the code of the refusal. */
  readonly word: string
  /** What made this input unlike others, such as the sentence of the refusal; a new one is kept in memory. */
  readonly signal: string
}

export interface FuzzTarget {
  readonly name: string
  /** What is read, in a few words. */
  readonly reads: string
  /** Longest input that is tried. */
  readonly maximumInputBytes: number
  seeds(): readonly Uint8Array[]
  mutate(base: Uint8Array, other: Uint8Array, random: Random): Uint8Array
  /**
   * Reads the input and judges the reader.
   * @throws FuzzFinding when a promise is broken. Any other error is a finding too.
   */
  check(input: Uint8Array): Verdict | Promise<Verdict>
  close?(): Promise<void>
}

/** A broken promise, in a sentence without the input: it also tells findings of one kind apart. */
export class FuzzFinding extends Error {
  override readonly name = 'FuzzFinding'
}

export const accepted = (signal: string): Verdict => ({ word: 'accepted', signal: `accepted ${signal}` })

/** @throws the error itself when it is no refusal of this code: nothing else may come out of a reader. */
export function refusedAs(error: unknown, code: string): Verdict {
  if (!isBrokerError(error) || error.code !== code) throw error
  if (!/^[\x20-\x7e]+$/.test(error.message) || error.message.includes(CANARY)) {
    throw new FuzzFinding('the sentence of a refusal holds what the peer sent')
  }
  return { word: code, signal: withoutNumbers(error.message) }
}

/** Mutators put this word into inputs; no sentence may repeat it. */
export const CANARY = 'PEER-CANARY'

/** The kind of a sentence: offsets and lengths differ from input to input. */
export function withoutNumbers(sentence: string): string {
  return sentence.replace(/[0-9]+/g, '#')
}
