// Owns the control token: read once under the custody rules of secrets, compared in constant time, never shown.
// Must never: give its bytes away, or tell by how long it takes how much of a guess was right.
// Source: RFC 6750 section 2.1 for its alphabet; the control gate of the caller routes.
import { createHmac, randomBytes, randomInt, timingSafeEqual } from 'node:crypto'
import { inspect } from 'node:util'
import { CONTROL_TOKEN_FORM, MAXIMUM_CONTROL_TOKEN_BYTES } from '../protocol/caller-http.js'
import { BrokerError } from '../protocol/errors.js'
import { type KeySource, readSecret } from '../system/key-file.js'

const WHAT = 'control token'
/** Room for the line end that editors and `echo` leave. */
const MAXIMUM_OUTER_BYTES = 2
/** What a file of one may hold. */
export const CONTROL_TOKEN_FILE_BYTES = {
  maximum: MAXIMUM_CONTROL_TOKEN_BYTES + MAXIMUM_OUTER_BYTES,
  minimum: 1,
}
const FORM_BASE = 0x0100_0193

/**
 * Reads the token of a file, a sealed descriptor or a service manager's credential; white space around it is none of it.
 * @throws BrokerError `custody`; `invalid_configuration` for what is no bearer token of 1..512 bytes.
 */
export function readControlToken(source: KeySource): ControlToken {
  const { maximum: maximumBytes, minimum: minimumBytes } = CONTROL_TOKEN_FILE_BYTES
  const bytes = readSecret(source, WHAT, { minimumBytes, maximumBytes })
  try {
    return new ControlToken(Buffer.from(bytes).toString('latin1').trim())
  } finally {
    bytes.fill(0)
  }
}

export class ControlToken {
  readonly #bytes: Buffer
  readonly #macKey = randomBytes(32)
  readonly #mac: Buffer
  /** Base of the search, odd and unknown to whoever chooses what is searched. */
  readonly #base = (FORM_BASE + 2 * randomInt(2 ** 30)) | 0
  readonly #hash: number

  /** @throws BrokerError `invalid_configuration`, without a byte of it. */
  constructor(token: string) {
    if (!CONTROL_TOKEN_FORM.test(token)) {
      throw new BrokerError(
        'invalid_configuration',
        `control token refused: expected 1 to ${MAXIMUM_CONTROL_TOKEN_BYTES} characters of the bearer alphabet, got another text of ${token.length}; make one: head -c 32 /dev/urandom | base64`,
      )
    }
    this.#bytes = Buffer.from(token, 'latin1')
    this.#mac = this.#macOf(token)
    this.#hash = this.#bytes.reduce((hash, byte) => this.#next(hash, byte), 0)
  }

  /** Whether a presented token is this one. Both are hashed first, so that not even the length is told by time. */
  isPresented(candidate: string): boolean {
    return timingSafeEqual(this.#macOf(candidate), this.#mac)
  }

  /**
   * Whether the token stands anywhere in a field's value. A rolling hash under a secret base moves over every window in
   * the same steps; only a window of the same hash is compared, in constant time.
   */
  standsIn(value: Buffer): boolean {
    const length = this.#bytes.length
    let leaving = 1
    for (let at = 0; at < length; at++) leaving = Math.imul(leaving, this.#base)
    let hash = 0
    let found = false
    for (let at = 0; at < value.length; at++) {
      hash = this.#next(hash, value[at] as number)
      if (at >= length) hash = (hash - Math.imul(leaving, value[at - length] as number)) | 0
      if (at + 1 < length || hash !== this.#hash) continue
      found = timingSafeEqual(value.subarray(at + 1 - length, at + 1), this.#bytes) || found
    }
    return found
  }

  toString(): string {
    return '[control token]'
  }

  toJSON(): string {
    return this.toString()
  }

  [inspect.custom](): string {
    return this.toString()
  }

  #next(hash: number, byte: number): number {
    return (Math.imul(hash, this.#base) + byte) | 0
  }

  #macOf(text: string): Buffer {
    return createHmac('sha256', this.#macKey).update(text, 'latin1').digest()
  }
}
