// Owns the search for a reflected credential: raw, base64 at every alignment, hex, and under percent,
// JSON and HTML escapes in any mixture. It says which form was found and never where a byte of it stood.
// What it must never be taken for: proof of absence. A provider that means to leak can always encode
// otherwise; this stops the echo endpoint and the error page.
// Source: broker wire §13; RFC 4648.

import type { HeaderField } from '../../protocol/destination.js'
import type { CredentialPlacement } from '../../protocol/placement.js'
import { type ByteSet, byteSet, escapeAt, lengthOf, NO_ESCAPE, signsHiding, unitOf } from './escaped-bytes.js'
import { base64Bytes, base64Core, hexBytes, lowerCaseBytes } from './secret-encodings.js'

export type SecretForm = 'raw' | 'base64' | 'base64url' | 'hex' | 'escaped' | 'lower case'

interface Pattern {
  readonly form: SecretForm
  readonly bytes: Buffer
}

/** Shorter encoded pieces of a very short secret stand in ordinary text by chance. */
const MINIMUM_ENCODED_BYTES = 8

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
    this.#secret = Buffer.from(secret)
    this.#lowered = viewOf(lowerCaseBytes(secret))
    this.#bytesOfSecret = byteSet(secret)
    this.#patterns = [
      { form: 'raw', bytes: this.#secret },
      ...encodedPatterns(secret),
      ...basicPatterns(secret, placement),
    ]
    this.#borders = bordersOf(secret)
  }

  /** The form in which the secret stands in these bytes, or null. */
  find(bytes: Uint8Array): SecretForm | null {
    const searched = viewOf(bytes)
    const hit = this.#patterns.find(pattern => searched.includes(pattern.bytes))
    if (hit !== undefined) return hit.form
    return this.#hidesUnderEscapes(bytes) ? 'escaped' : null
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
    this.#secret.fill(0)
    this.#lowered.fill(0)
    this.#bytesOfSecret.fill(0)
    this.#borders.fill(0)
  }

  /** Each kind of escape alone, and all together. Alone matters: in JSON a `%41` is three characters. */
  #hidesUnderEscapes(bytes: Uint8Array): boolean {
    const signs = signsHiding(bytes, this.#bytesOfSecret)
    const readings = signs.map(sign => byteSet([sign]))
    if (signs.length > 1) readings.push(byteSet(signs))
    return readings.some(reading => this.#findUnescaped(bytes, reading))
  }

  #findUnescaped(bytes: Uint8Array, signs: ByteSet): boolean {
    let matched = 0
    for (let at = 0; at < bytes.length; ) {
      const byte = bytes[at] as number
      const escape = signs[byte] === 1 ? escapeAt(bytes, at) : NO_ESCAPE
      const unit = escape === NO_ESCAPE ? byte : unitOf(escape)
      at += escape === NO_ESCAPE ? 1 : lengthOf(escape)
      while (matched > 0 && this.#secret[matched] !== unit) matched = this.#borders[matched - 1] as number
      if (this.#secret[matched] === unit) matched++
      if (matched === this.#secret.length) return true
    }
    return false
  }
}

function encodedPatterns(secret: Uint8Array): Pattern[] {
  const cores = (['base64', 'base64url'] as const).flatMap(form =>
    ([0, 1, 2] as const).map(offset => ({ form, bytes: viewOf(base64Core(secret, offset, form)) })),
  )
  const hex = (['lower', 'upper'] as const).map(letters => ({
    form: 'hex' as const,
    bytes: viewOf(hexBytes(secret, letters)),
  }))
  return [...cores, ...hex].filter(({ bytes }) => bytes.length >= MINIMUM_ENCODED_BYTES)
}

/** The header value of Basic: found whole even where the secret alone is too short for its core. */
function basicPatterns(secret: Uint8Array, placement: CredentialPlacement): Pattern[] {
  if (placement.kind !== 'basic_authorization') return []
  const pair = Buffer.concat([Buffer.from(`${placement.user}:`, 'latin1'), secret])
  const encoded = base64Bytes(pair)
  pair.fill(0)
  return encoded.length < MINIMUM_ENCODED_BYTES ? [] : [{ form: 'base64', bytes: viewOf(encoded) }]
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
