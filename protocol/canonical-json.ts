// Owns reading and skipping of any canonical JSON value from the byte buffer. Must never accept two texts for
// one value: member names strictly ascending in UTF-16 order make duplicates impossible.
// Source: RFC 8785 section 3.2.

import type { CanonicalReader } from './canonical-reader.js'
import type { JsonValue } from './json.js'

const TRUE = Buffer.from('true')
const FALSE = Buffer.from('false')
const NULL = Buffer.from('null')

/** Reads any canonical value whose text has at most `maximumBytes` bytes. */
export function readJson(reader: CanonicalReader, maximumBytes: number): JsonValue {
  return readValue(reader, reader.offset + maximumBytes)
}

function readValue(reader: CanonicalReader, limit: number): JsonValue {
  const value = readBareValue(reader, limit)
  if (reader.offset > limit) reader.refuse('a shorter JSON value')
  return value
}

function readBareValue(reader: CanonicalReader, limit: number): JsonValue {
  switch (reader.peek()) {
    case 0x22:
      return reader.text(Math.max(0, limit - reader.offset))
    case 0x7b:
      return readObject(reader, limit)
    case 0x5b:
      return readArray(reader, limit)
    case 0x74:
      return reader.take(TRUE) || reader.refuse('a value')
    case 0x66:
      return reader.take(FALSE) ? false : reader.refuse('a value')
    case 0x6e:
      return reader.take(NULL) ? null : reader.refuse('a value')
    default:
      return reader.number()
  }
}

function readArray(reader: CanonicalReader, limit: number): JsonValue {
  reader.offset++
  reader.enter('[]')
  const items: JsonValue[] = []
  if (reader.peek() === 0x5d) reader.offset++
  else {
    do items.push(readValue(reader, limit))
    while (reader.more())
  }
  reader.leave()
  return items
}

function readObject(reader: CanonicalReader, limit: number): JsonValue {
  reader.offset++
  reader.enter('{}')
  const value: Record<string, JsonValue> = {}
  let previous: string | undefined
  while (reader.moreMembers(previous === undefined)) {
    const key = readKey(reader, previous, limit)
    value[key] = readValue(reader, limit)
    previous = key
  }
  reader.leave()
  return value
}

function readKey(reader: CanonicalReader, previous: string | undefined, limit: number): string {
  const key = reader.text(Math.max(0, limit - reader.offset))
  if (key === '__proto__') reader.refuse('a member name other than __proto__')
  if (previous !== undefined && key <= previous) reader.refuse('member names in ascending order')
  reader.expect(0x3a, 'a colon')
  return key
}

/** Passes over any value, converted byte strings at once. Fully checked when it is read. */
export function skipJson(reader: CanonicalReader): void {
  if (!reader.skipConverted()) readJson(reader, reader.bytes.length)
}
