// Owns the fuzzing of the canonical reader. The judge is independent of it: a text is canonical exactly when the
// engine reads it, the canonical writer writes what was read, and the same bytes come out.
import { readJson } from '../../protocol/canonical-json.js'
import { canonicalBytes } from '../../protocol/canonical.js'
import { CanonicalReader } from '../../protocol/canonical-reader.js'
import type { JsonValue } from '../../protocol/json.js'
import { jsonSeeds } from './json-seeds.js'
import { mutateJson } from './mutate-json.js'
import { accepted, FuzzFinding, type FuzzTarget, refusedAs, type Verdict } from './target.js'
import { shapeOf } from './value-shape.js'

export const canonicalTarget: FuzzTarget = {
  name: 'canonical',
  reads: 'canonical JSON, against writing it again',
  maximumInputBytes: 16_384,
  seeds: () =>
    jsonSeeds()
      .map(canonicalOf)
      .filter(bytes => bytes !== undefined),
  mutate: mutateJson,
  check: checkCanonical,
}

function checkCanonical(input: Uint8Array): Verdict {
  const expected = canonicalOf(input)
  const isCanonical = expected !== undefined && Buffer.compare(expected, input) === 0
  let value: JsonValue
  try {
    const reader = new CanonicalReader(input, 'document')
    value = readJson(reader, input.length)
    reader.end()
  } catch (error) {
    const verdict = refusedAs(error, 'invalid_request')
    if (isCanonical) throw new FuzzFinding('the canonical reader refused what the canonical writer wrote')
    return verdict
  }
  if (!isCanonical) throw new FuzzFinding('the canonical reader took a text that is not canonical')
  if (JSON.stringify(value) !== JSON.stringify(JSON.parse(Buffer.from(input).toString('utf8'))))
    throw new FuzzFinding('the canonical reader and JSON.parse read one text differently')
  return accepted(shapeOf(value))
}

/** The canonical bytes of what this text means, or undefined where it has none. */
function canonicalOf(input: Uint8Array): Uint8Array | undefined {
  try {
    return canonicalBytes(JSON.parse(Buffer.from(input).toString('utf8')) as JsonValue)
  } catch {
    return undefined
  }
}
