// Owns the fuzzing of every codec of `protocol/`. A text is refused with `invalid_request`, or it is read and
// encodes to exactly the bytes that came; what was read is what the engine reads; nothing else is ever thrown.
import { canonicalBytes } from '../../protocol/canonical.js'
import { type Codec, decode, encode } from '../../protocol/codec.js'
import type { JsonValue } from '../../protocol/json.js'
import { CODECS, codecSamples } from './codec-catalogue.js'
import { labelled, readLabel } from './label.js'
import { mutateJson } from './mutate-json.js'
import type { Random } from './random.js'
import { accepted, FuzzFinding, type FuzzTarget, refusedAs, type Verdict } from './target.js'
import { shapeOf } from './value-shape.js'

const NAMES = [...CODECS.keys()]

export const codecTarget: FuzzTarget = {
  name: 'codec',
  reads: 'every document of the protocol',
  maximumInputBytes: 65_536,
  seeds: () => [...codecSamples()].flatMap(([name, texts]) => texts.map(text => labelled(name, text))),
  mutate: mutateDocument,
  check(input) {
    const { label, rest } = readLabel(input)
    const codec = CODECS.get(label)
    return codec === undefined ? { word: 'no codec', signal: 'no codec' } : checkCodec(codec, label, rest)
  },
}

/** The label stays; now and then the document is given to another codec. */
export function mutateDocument(base: Uint8Array, other: Uint8Array, random: Random): Uint8Array {
  const { label, rest } = readLabel(base)
  const name = random.once(30) ? random.pick(NAMES) : label
  return labelled(name, mutateJson(rest, readLabel(other).rest, random))
}

export function checkCodec(codec: Codec<unknown>, name: string, bytes: Uint8Array): Verdict {
  let value: unknown
  try {
    value = decode(codec, bytes, name)
  } catch (error) {
    const { word, signal } = refusedAs(error, 'invalid_request')
    return { word, signal: `${name} ${signal}` }
  }
  if (Buffer.compare(encode(codec, value), bytes) !== 0)
    throw new FuzzFinding(`${name} read a text that it writes differently`)
  if (Buffer.compare(canonicalBytes(plain(value)), bytes) !== 0)
    throw new FuzzFinding(`${name} read another value than the text holds`)
  assertEngineAgrees(name, value, bytes)
  return accepted(`${name} ${shapeOf(value)}`)
}

function assertEngineAgrees(name: string, value: unknown, bytes: Uint8Array): void {
  const theirs = JSON.stringify(JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes)))
  if (theirs !== JSON.stringify(plain(value)))
    throw new FuzzFinding(`${name} and JSON.parse read one text differently`)
}

/** A document with its byte strings as arrays of numbers, as the wire shows them. */
export function plain(value: unknown): JsonValue {
  if (value instanceof Uint8Array) return [...value]
  if (Array.isArray(value)) return value.map(plain)
  if (typeof value !== 'object' || value === null) return value as JsonValue
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, plain(member)]))
}
