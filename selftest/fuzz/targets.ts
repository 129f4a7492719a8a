// Owns the list of fuzz targets.
import { canonicalTarget } from './target-canonical.js'
import { codecTarget } from './target-codec.js'
import { descriptorTarget } from './target-descriptors.js'
import { frameTarget } from './target-frame.js'
import { jsonTarget } from './target-json.js'
import { responseTarget } from './target-response.js'
import { scanTarget } from './target-scan.js'
import { slicedTarget } from './target-sliced.js'
import { streamTarget } from './target-stream.js'
import type { FuzzTarget } from './target.js'

export const FUZZ_TARGETS: readonly FuzzTarget[] = [
  frameTarget,
  streamTarget,
  descriptorTarget,
  jsonTarget,
  canonicalTarget,
  codecTarget,
  slicedTarget,
  responseTarget,
  scanTarget,
]

export const FUZZ_TARGET_NAMES: readonly string[] = FUZZ_TARGETS.map(({ name }) => name)

export function fuzzTarget(name: string): FuzzTarget | undefined {
  return FUZZ_TARGETS.find(target => target.name === name)
}
