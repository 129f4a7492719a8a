// Owns the search for a reflected credential: raw, as UTF-16, base64 and base32 at every alignment, hex, those
// also when wrapped into lines, and under percent, JSON and HTML escapes in any mixture, once or doubled. It says
// which form was found and never where a byte of it stood.
// What it must never be taken for: proof of absence. A provider that means to leak can always encode
// otherwise; this stops the echo endpoint and the error page.
// Source: broker wire §13; RFC 4648.

import type { HeaderField } from '../../protocol/destination.js'
import type { CredentialPlacement } from '../../protocol/placement.js'
import {
  type ByteSet,
  byteSet,
  doubledSigns,
  escapeAt,
  MAXIMUM_DOUBLINGS,
  lengthOf,
  NO_ESCAPE,
  signsHiding,
  unitOf,
} from './escaped-bytes.js'
import { lowerCaseBytes } from './secret-encodings.js'
import { type Pattern, type PatternForm, patternsOf } from './secret-patterns.js'

export type SecretForm = PatternForm | 'escaped' | 'lower case'

/** Half of it by chance in a text whose blanks were taken out: shorter ones are not looked for there. */
const MINIMUM_WRAPPED_BYTES = 16
/** What lines are wrapped with; zero bytes stand between the letters of UTF-16. */
const BLANKS = byteSet([0x00, 0x09, 0x0a, 0x0d, 0x20])
/** Without one of these nothing is wrapped. */
const WRAPPING = [0x00, 0x0a, 0x0d]
const LEVELS = Array.from({ length: MAXIMUM_DOUBLINGS }, (_unused, at) => at + 1).map(doublings => ({
  doublings,
  signs: doubledSigns(doublings),
}))

export class SecretScan {
  readonly #secret: Buffer
  readonly #lowered: Buffer
  readonly #bytesOfSecret: ByteSet
  readonly #patterns: readonly Pattern[]
  /** Longest proper border of each prefix (Knuth, Morris, Pratt): one pass, whatever the answer holds. */
  readonly #borders: Uint32Array

  /** Copies the secret; `wipe` when the answer was judged. */
  constructor(secret: Uint8Array, placement: CredentialPlacement) {
    if (secret.length === 0) throw new RangeError('"secret" expected 1 byte or more, got 0')
    this.#patterns = patternsOf(secret, placement)
    this.#secret = (this.#patterns[0] as Pattern).bytes
    this.#lowered = viewOf(lowerCaseBytes(secret))
    this.#bytesOfSecret = byteSet(secret)
    this.#borders = bordersOf(secret)
  }

  /** The form in which the secret stands in these bytes, or null. */
  find(bytes: Uint8Array): SecretForm | null {
    const searched = viewOf(bytes)
    const hit = this.#findPattern(searched) ?? this.#findWrapped(searched)
    if (hit !== null) return hit
    return this.#hidesUnderEscapes(searched) ? 'escaped' : null
  }

  /** The same for what the caller would get of a header; names arrive in lower case. */
  findInHeaders(headers: readonly HeaderField[]): SecretForm | null {
    for (const { name, value } of headers) {
      const nameBytes = Buffer.from(name, 'latin1')
      const form = this.find(value) ?? this.find(nameBytes)
      if (form !== null) return form
      if (nameBytes.includes(this.#lowered)) return 'lower case'
    }
    return null
  }

  wipe(): void {
    for (const { bytes } of this.#patterns) bytes.fill(0)
    this.#lowered.fill(0)
    this.#bytesOfSecret.fill(0)
    this.#borders.fill(0)
  }

  #findPattern(searched: Buffer): PatternForm | null {
    return this.#patterns.find(({ bytes }) => searched.includes(bytes))?.form ?? null
  }

  /** Encodings are cut into lines by many programs. The secret itself holds no blanks, so raw text is not joined. */
  #findWrapped(searched: Buffer): PatternForm | null {
    if (!WRAPPING.some(byte => searched.includes(byte))) return null
    const joined = withoutBlanks(searched)
    const found = this.#patterns.find(
      ({ form, bytes: { length }, bytes: wanted }) =>
        form !== 'raw' && length >= MINIMUM_WRAPPED_BYTES && joined.includes(wanted),
    )
    joined.fill(0)
    return found?.form ?? null
  }

  /** Each kind of escape alone, and all together. Alone matters: in JSON a `%41` is three characters. */
  #hidesUnderEscapes(bytes: Buffer): boolean {
    const signs = signsHiding(bytes, this.#bytesOfSecret)
    const readings = signs.map(sign => byteSet([sign]))
    if (signs.length > 1) readings.push(byteSet(signs))
    if (readings.some(reading => this.#findUnescaped(bytes, reading, 0))) return true
    return LEVELS.some(
      level => level.signs.some(sign => bytes.includes(sign)) && this.#hidesDoubled(bytes, level.doublings),
    )
  }

  #hidesDoubled(bytes: Uint8Array, doublings: number): boolean {
    const signs = signsHiding(bytes, this.#bytesOfSecret, doublings)
    return signs.length > 0 && this.#findUnescaped(bytes, byteSet(signs), doublings)
  }

  #findUnescaped(bytes: Uint8Array, signs: ByteSet, doublings: number): boolean {
    let matched = 0
    for (let at = 0; at < bytes.length; ) {
      const byte = bytes[at] as number
      const escape = signs[byte] === 1 ? escapeAt(bytes, at, doublings) : NO_ESCAPE
      const unit = escape === NO_ESCAPE ? byte : unitOf(escape)
      at += escape === NO_ESCAPE ? 1 : lengthOf(escape)
      while (matched > 0 && this.#secret[matched] !== unit) matched = this.#borders[matched - 1] as number
      if (this.#secret[matched] === unit) matched++
      if (matched === this.#secret.length) return true
    }
    return false
  }
}

/** A copy without blanks, to be wiped. */
function withoutBlanks(bytes: Uint8Array): Buffer {
  const joined = Buffer.allocUnsafeSlow(bytes.length)
  let length = 0
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at] as number
    if (BLANKS[byte] === 0) joined[length++] = byte
  }
  return joined.subarray(0, length)
}

function bordersOf(secret: Uint8Array): Uint32Array {
  const borders = new Uint32Array(secret.length)
  let border = 0
  for (let index = 1; index < secret.length; index++) {
    while (border > 0 && secret[index] !== secret[border]) border = borders[border - 1] as number
    if (secret[index] === secret[border]) border++
    borders[index] = border
  }
  return borders
}

/** The same memory as a Buffer, so that a wipe reaches it and a search is native. */
function viewOf(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}
