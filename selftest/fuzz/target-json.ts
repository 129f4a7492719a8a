// Owns the fuzzing of the strict JSON reader against the engine's own: what both take means the same, what ours
// refuses beyond that has a rule, and what it takes survives canonical writing and reading.
import { readJson } from '../../protocol/canonical-json.js'
import { canonicalBytes } from '../../protocol/canonical.js'
import { CanonicalReader } from '../../protocol/canonical-reader.js'
import { parseStrictJson, type JsonValue } from '../../protocol/json.js'
import { jsonSeeds } from './json-seeds.js'
import { mutateJson } from './mutate-json.js'
import { accepted, FuzzFinding, type FuzzTarget, refusedAs, type Verdict } from './target.js'
import { shapeOf } from './value-shape.js'

export const jsonTarget: FuzzTarget = {
  name: 'json',
  reads: 'strict JSON, against JSON.parse',
  maximumInputBytes: 16_384,
  seeds: jsonSeeds,
  mutate: mutateJson,
  check: checkJson,
}

function checkJson(input: Uint8Array): Verdict {
  let value: JsonValue
  try {
    value = parseStrictJson(input, 'document')
  } catch (error) {
    const verdict = refusedAs(error, 'invalid_request')
    assertHasReason(input)
    return verdict
  }
  const theirs = enginesReading(input)
  if (theirs === undefined) throw new FuzzFinding('the strict reader took what JSON.parse refuses')
  if (JSON.stringify(theirs) !== JSON.stringify(value))
    throw new FuzzFinding('the strict reader and JSON.parse read one text differently')
  assertSurvives(value)
  return accepted(shapeOf(value))
}

/** The engine decodes leniently (a byte order mark, bad UTF-8), so the bytes are looked at first. */
function enginesReading(input: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(input))
  } catch {
    return undefined
  }
}

function assertSurvives(value: JsonValue): void {
  const bytes = canonicalBytes(value)
  const reader = new CanonicalReader(bytes, 'document')
  const again = readJson(reader, bytes.length)
  reader.end()
  if (Buffer.compare(canonicalBytes(again), bytes) !== 0)
    throw new FuzzFinding('a value changed on its way through canonical bytes')
}

/** A refused text that JSON.parse takes must break one of the rules that ours has beyond it. */
function assertHasReason(input: Uint8Array): void {
  const theirs = enginesReading(input)
  if (theirs === undefined) return
  const text = Buffer.from(input).toString('utf8')
  const hasReason =
    /__proto__|\\u(005[fF]|007[0-9]|006[0-9a-fA-F])/.test(text) ||
    /\\u[dD][89a-fA-F]/.test(text) ||
    /[0-9]{16}|[0-9][eE]/.test(text) ||
    depthOf(text) > 64 ||
    hasDoubledKey(text)
  if (!hasReason) throw new FuzzFinding('the strict reader refused a text for no reason that it has')
}

function depthOf(text: string): number {
  let depth = 0
  let deepest = 0
  for (const sign of text.replace(/"(?:[^"\\]|\\.)*"/g, '')) {
    if (sign === '[' || sign === '{') deepest = Math.max(deepest, ++depth)
    else if (sign === ']' || sign === '}') depth--
  }
  return deepest
}

/** Fewer members after parsing than colons in the text. */
function hasDoubledKey(text: string): boolean {
  let members = 0
  JSON.parse(text, (_key, part: unknown) => {
    if (typeof part === 'object' && part !== null && !Array.isArray(part)) members += Object.keys(part).length
    return part
  })
  const colons = text.replace(/"(?:[^"\\]|\\.)*"/g, '').split(':').length - 1
  return members < colons
}
