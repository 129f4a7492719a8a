// Owns RFC 8785 for any JSON value. Must never drop or repair: undefined, functions, lone surrogates,
// byte arrays and class instances are faults of the caller, not empty members.
// Source: RFC 8785; integers in plain digits stay within 2^53-1 (RFC 7493).

import { isUnsafeInteger } from './canonical-reader.js'
import { compareUtf16 } from './canonical-text.js'
import { type CanonicalWriter, writeText } from './canonical-writer.js'
import type { JsonValue } from './json.js'

const COLON = 0x3a
const OPENING_BRACE = 0x7b
const CLOSING_BRACE = 0x7d
const OPENING_BRACKET = 0x5b
const CLOSING_BRACKET = 0x5d

/** The canonical bytes of a value: sorted members, no whitespace, shortest numbers. */
export function canonicalBytes(value: JsonValue): Uint8Array {
  return writeText(writer => writeJson(writer, value))
}

export function writeJson(writer: CanonicalWriter, value: JsonValue): void {
  switch (typeof value) {
    case 'string':
      return writer.text(value)
    case 'number':
      return writeNumber(writer, value)
    case 'boolean':
      return writer.ascii(value ? 'true' : 'false')
    case 'object':
      if (value === null) return writer.ascii('null')
      return Array.isArray(value) ? writeArray(writer, value) : writeObject(writer, value)
    default:
      return writer.refuse('a JSON value', typeof value, TypeError)
  }
}

function writeNumber(writer: CanonicalWriter, value: number): void {
  if (!Number.isFinite(value)) writer.refuse('a finite number', String(value))
  if (isUnsafeInteger(value)) writer.refuse('an integer within 2^53-1', 'a larger one')
  writer.ascii(String(value))
}

function writeArray(writer: CanonicalWriter, items: readonly JsonValue[]): void {
  writer.enter('[]')
  writer.byte(OPENING_BRACKET)
  for (let i = 0; i < items.length; i++) {
    if (i > 0) writer.comma()
    writeJson(writer, items[i] as JsonValue)
  }
  writer.byte(CLOSING_BRACKET)
  writer.leave()
}

function writeObject(writer: CanonicalWriter, value: object): void {
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype !== Object.prototype && prototype !== null) {
    writer.refuse('a plain object', 'a class instance', TypeError)
  }
  // An empty object is a level too: the reader counts it.
  writer.enter('{}')
  writer.byte(OPENING_BRACE)
  const keys = Object.keys(value).sort(compareUtf16)
  for (const [index, key] of keys.entries()) {
    if (key === '__proto__') writer.refuse('a member name other than __proto__', 'it')
    if (index > 0) writer.comma()
    writer.text(key)
    writer.byte(COLON)
    writeJson(writer, (value as Record<string, JsonValue>)[key] as JsonValue)
  }
  writer.byte(CLOSING_BRACE)
  writer.leave()
}
