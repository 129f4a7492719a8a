// Owns objects of a fixed set of members, and unions told apart by one member. Must never ignore a member:
// unknown, missing, doubled and misordered ones are all refused, naming the member of ours that was due.
// Source: RFC 8785 section 3.2.3 (order of UTF-16 code units); the protocol refuses unknown members.

import { skipJson } from './canonical-json.js'
import type { CanonicalReader } from './canonical-reader.js'
import { compareUtf16 } from './canonical-text.js'
import type { CanonicalWriter } from './canonical-writer.js'
import { literal } from './codec-values.js'
import type { Codec, Infer } from './document-codec.js'
import { eitherSchema, membersSchema } from './document-schema.js'

const OPENING_BRACE = 0x7b
const CLOSING_BRACE = 0x7d
const MAXIMUM_TAG_BYTES = 128

export type Members = { readonly [name: string]: Codec<unknown> }
type Simplify<T> = { [K in keyof T]: T[K] } & {}
export type ObjectValue<M extends Members, O extends Members> = Simplify<
  { readonly [K in keyof M]: Infer<M[K]> } & { readonly [K in keyof O]?: Infer<O[K]> }
>

/** An object codec can become a variant of a union, which adds the member that tells it apart. */
export interface ObjectCodec<T> extends Codec<T> {
  withTag<const K extends string, const V extends string>(
    key: K,
    value: V,
  ): ObjectCodec<Simplify<{ readonly [P in K]: V } & T>>
}

interface Slot {
  readonly name: string
  readonly codec: Codec<unknown>
  readonly optional: boolean
  /** `"name":` as canonical bytes. */
  readonly token: Uint8Array
}

/** Exactly these members, and those of `optional` when present (absent when undefined). */
export function object<M extends Members, O extends Members = Record<never, never>>(
  members: M,
  also: { optional?: O } = {},
): ObjectCodec<ObjectValue<M, O>> {
  const slots = [...slotsOf(members, false), ...slotsOf(also.optional ?? {}, true)]
  return objectOf(slots) as ObjectCodec<ObjectValue<M, O>>
}

function slotsOf(members: Members, optional: boolean): Slot[] {
  return Object.entries(members).map(([name, codec]) => slot(name, codec, optional))
}

function slot(name: string, codec: Codec<unknown>, optional: boolean): Slot {
  return { name, codec, optional, token: Buffer.from(`${JSON.stringify(name)}:`) }
}

type Value = Record<string, unknown>

function objectOf(unsorted: readonly Slot[]): ObjectCodec<Value> {
  const slots = [...unsorted].sort((left, right) => compareUtf16(left.name, right.name))
  assertDistinct(slots)
  return {
    describe: () =>
      membersSchema(slots.map(({ codec, name, optional }) => ({ name, optional, schema: codec.describe() }))),
    read: reader => readSlots(reader, slots),
    write: (writer, value) => writeSlots(writer, slots, value),
    withTag: (key, value) => objectOf([...slots, slot(key, literal(value), false)]) as ObjectCodec<never>,
  }
}

function assertDistinct(slots: readonly Slot[]): void {
  for (const [index, { name }] of slots.entries()) {
    if (name === '__proto__') throw new RangeError('"members" expected names other than __proto__')
    if (slots[index - 1]?.name === name) throw new RangeError(`"members" expected "${name}" once, got twice`)
  }
}

function readSlots(reader: CanonicalReader, slots: readonly Slot[]): Value {
  reader.expect(OPENING_BRACE, 'an object')
  const value: Value = {}
  let first = true
  for (const { name, codec, optional, token } of slots) {
    reader.enter(name)
    if (reader.takeMember(token, first)) {
      value[name] = codec.read(reader)
      first = false
    } else if (!optional) reader.refuse('this member next (one is unknown, missing or out of order)')
    reader.leave()
  }
  reader.expect(CLOSING_BRACE, 'no further member (one is unknown or out of order)')
  return value
}

function writeSlots(writer: CanonicalWriter, slots: readonly Slot[], value: Value): void {
  if (typeof value !== 'object' || value === null) writer.refuse('an object', typeof value, TypeError)
  writer.byte(OPENING_BRACE)
  let first = true
  for (const { name, codec, optional, token } of slots) {
    const member = value[name]
    if (optional && member === undefined) continue
    writer.enter(name)
    if (!first) writer.comma()
    writer.token(token)
    codec.write(writer, member)
    writer.leave()
    first = false
  }
  writer.byte(CLOSING_BRACE)
}

type Variants = { readonly [value: string]: ObjectCodec<unknown> }
export type TaggedValue<K extends string, V extends Variants> = {
  [N in keyof V]: Simplify<{ readonly [P in K]: N } & Infer<V[N]>>
}[keyof V]

/** One of several objects, told apart by the member `key`; each variant is given without that member. */
export function tagged<const K extends string, V extends Variants>(
  key: K,
  variants: V,
): Codec<TaggedValue<K, V>> {
  const codecs = new Map(
    Object.entries(variants).map(([name, codec]) => [name, codec.withTag(key, name) as Codec<unknown>]),
  )
  const token = Buffer.from(`${JSON.stringify(key)}:`)
  const expected = [...codecs.keys()].map(name => JSON.stringify(name)).join(' or ')
  return {
    describe: () => eitherSchema(...[...codecs.values()].map(codec => codec.describe())),
    read(reader) {
      const codec = codecs.get(peekTag(reader, key, token))
      return (codec ?? reader.refuse(`"${key}" to be ${expected}`)).read(reader) as TaggedValue<K, V>
    },
    write(writer, value) {
      const codec = codecs.get((value as Value)[key] as string)
      if (codec === undefined) return writer.refuse(`"${key}" to be ${expected}`, 'another value')
      codec.write(writer, value)
    },
  }
}

/** Looks ahead for the telling member, which may stand behind others, and comes back. */
function peekTag(reader: CanonicalReader, key: string, token: Uint8Array): string {
  const start = reader.offset
  reader.expect(OPENING_BRACE, 'an object')
  reader.enter(key)
  for (let first = true; !reader.takeMember(token, first); first = false) skipMember(reader, first)
  const tag = reader.text(MAXIMUM_TAG_BYTES)
  reader.leave()
  reader.offset = start
  return tag
}

function skipMember(reader: CanonicalReader, first: boolean): void {
  if (reader.peek() === CLOSING_BRACE) reader.refuse('this member')
  if (!first) reader.expect(0x2c, 'a comma or the end of the object')
  reader.text(MAXIMUM_TAG_BYTES)
  reader.expect(0x3a, 'a colon')
  skipJson(reader)
}

/** Either a string form or an object form, told apart by the first byte. */
export function textOrObject<T extends string, U>(textual: Codec<T>, objectual: Codec<U>): Codec<T | U> {
  return {
    describe: () => eitherSchema(textual.describe(), objectual.describe()),
    read: reader => (reader.peek() === 0x22 ? textual.read(reader) : objectual.read(reader)),
    write(writer, value) {
      if (typeof value === 'string') textual.write(writer, value as T)
      else objectual.write(writer, value)
    },
  }
}

/** Adds a condition that ties members together. `check` throws the refusal, a BrokerError. */
export function refine<T>(codec: ObjectCodec<T>, check: (value: T) => void): ObjectCodec<T>
export function refine<T>(codec: Codec<T>, check: (value: T) => void): Codec<T>
export function refine<T>(codec: Codec<T> | ObjectCodec<T>, check: (value: T) => void): Codec<T> {
  const refined: Codec<T> = {
    describe: () => codec.describe(),
    read(reader) {
      const value = codec.read(reader)
      check(value)
      return value
    },
    write(writer, value) {
      check(value)
      codec.write(writer, value)
    },
  }
  if (!('withTag' in codec)) return refined
  const withTag: ObjectCodec<T>['withTag'] = (key, value) => refine(codec.withTag(key, value), check)
  return { ...refined, withTag } as ObjectCodec<T>
}
