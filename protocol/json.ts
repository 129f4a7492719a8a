// Owns strict reading of JSON that people or other programs wrote (configuration, command line files).
// Any whitespace and key order is allowed; what two readers may understand differently is not.
// Signed documents never come through here: they are canonical bytes and have codecs.
// Source: RFC 8259, narrowed by RFC 7493 (I-JSON).

import { hasLoneSurrogate } from './canonical-text.js'
import { isUnsafeInteger } from './canonical-reader.js'
import { BrokerError } from './errors.js'
import { MAXIMUM_JSON_DEPTH } from './limits.js'

export type JsonValue =
  | null
  | boolean
  | number
  | string
  | readonly JsonValue[]
  | { readonly [key: string]: JsonValue }

/** What `Array.isArray` does not say of a list that nobody may change. */
export function isList(value: JsonValue | undefined): value is readonly JsonValue[] {
  return Array.isArray(value)
}

const NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y
const WHITESPACE = /[ \t\n\r]*/y

/** What stands in the place of an integer beyond 2^53-1, from its digits; for documents that may hold one. */
export type LargeInteger = (digits: string) => JsonValue

/**
 * Parses JSON and refuses duplicate members, `__proto__`, lone surrogates, invalid UTF-8, a byte order
 * mark, integers beyond 2^53-1, numbers out of range, and nesting deeper than 64.
 * @throws BrokerError invalid_request with the offset, never the content.
 */
export function parseStrictJson(bytes: Uint8Array, what: string, largeInteger?: LargeInteger): JsonValue {
  return new StrictJson(decodeUtf8(bytes, what), what, largeInteger).document()
}

/**
 * As `parseStrictJson`, for a file that an operator keeps: nobody's request is at fault.
 * @throws BrokerError invalid_configuration with the offset, never the content.
 */
export function parseConfigurationJson(bytes: Uint8Array, what: string): JsonValue {
  try {
    return parseStrictJson(bytes, what)
  } catch (cause) {
    if (!(cause instanceof BrokerError)) throw cause
    throw new BrokerError('invalid_configuration', cause.message, { cause })
  }
}

function decodeUtf8(bytes: Uint8Array, what: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch (cause) {
    throw new BrokerError('invalid_request', `${what} refused: expected valid UTF-8`, { cause })
  }
}

class StrictJson {
  readonly #text: string
  readonly #what: string
  readonly #largeInteger: LargeInteger | undefined
  #at = 0
  #depth = 0

  constructor(text: string, what: string, largeInteger: LargeInteger | undefined) {
    this.#text = text
    this.#what = what
    this.#largeInteger = largeInteger
  }

  document(): JsonValue {
    const value = this.#value()
    if (this.#at !== this.#text.length) this.#refuse('the end')
    return value
  }

  #value(): JsonValue {
    this.#skipWhitespace()
    const value = this.#bareValue()
    this.#skipWhitespace()
    return value
  }

  #bareValue(): JsonValue {
    switch (this.#text[this.#at]) {
      case '{':
        return this.#nested(() => this.#object())
      case '[':
        return this.#nested(() => this.#array())
      case '"':
        return this.#string()
      case 't':
        return this.#word('true', true)
      case 'f':
        return this.#word('false', false)
      case 'n':
        return this.#word('null', null)
      default:
        return this.#number()
    }
  }

  #nested<T>(read: () => T): T {
    if (++this.#depth > MAXIMUM_JSON_DEPTH) this.#refuse(`at most ${MAXIMUM_JSON_DEPTH} levels`)
    this.#at++
    this.#skipWhitespace()
    const value = read()
    this.#depth--
    return value
  }

  #object(): JsonValue {
    const value: Record<string, JsonValue> = {}
    if (this.#takes('}')) return value
    do {
      this.#skipWhitespace()
      const key = this.#string()
      if (key === '__proto__') this.#refuse('a member name other than __proto__')
      if (Object.hasOwn(value, key)) this.#refuse('each member once')
      this.#skipWhitespace()
      if (!this.#takes(':')) this.#refuse('a colon')
      value[key] = this.#value()
    } while (this.#takes(','))
    if (!this.#takes('}')) this.#refuse('a comma or the end of the object')
    return value
  }

  #array(): JsonValue {
    const items: JsonValue[] = []
    if (this.#takes(']')) return items
    do items.push(this.#value())
    while (this.#takes(','))
    if (!this.#takes(']')) this.#refuse('a comma or the end of the array')
    return items
  }

  #string(): string {
    const start = this.#at
    if (!this.#takes('"')) this.#refuse('a string')
    while (this.#at < this.#text.length && this.#text[this.#at] !== '"') {
      this.#at += this.#text[this.#at] === '\\' ? 2 : 1
    }
    if (!this.#takes('"')) this.#refuse('the end of the string')
    const value = this.#unescape(this.#text.slice(start, this.#at))
    if (hasLoneSurrogate(value)) this.#refuse('text without lone surrogates')
    return value
  }

  /** The engine's own error quotes the text, so it is not kept as a cause. */
  #unescape(literal: string): string {
    try {
      return JSON.parse(literal) as string
    } catch {
      return this.#refuse('escapes of JSON and no bare control characters')
    }
  }

  #number(): JsonValue {
    const literal = this.#match(NUMBER)
    if (literal === undefined) this.#refuse('a value')
    const value = Number(literal)
    if (!Number.isFinite(value)) this.#refuse('a number within the range of a double')
    const spelledOut = !/[eE]/.test(literal)
    if (isUnsafeInteger(value) || (spelledOut && Math.abs(value) >= 1e21)) {
      if (this.#largeInteger === undefined) this.#refuse('an integer within 2^53-1')
      return this.#largeInteger(literal)
    }
    return value
  }

  #word<T>(word: string, value: T): T {
    if (!this.#text.startsWith(word, this.#at)) this.#refuse('a value')
    this.#at += word.length
    return value
  }

  #takes(character: string): boolean {
    if (this.#text[this.#at] !== character) return false
    this.#at++
    return true
  }

  #skipWhitespace(): void {
    this.#match(WHITESPACE)
  }

  #match(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at
    const found = pattern.exec(this.#text)?.[0]
    if (found !== undefined) this.#at += found.length
    return found
  }

  #refuse(expected: string): never {
    throw new BrokerError(
      'invalid_request',
      `${this.#what} refused: expected ${expected} at character ${this.#at}`,
    )
  }
}
