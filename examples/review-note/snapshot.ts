// Owns one digest over everything that a refused or a repeated command may not change: what is kept of the requests, the
// journal, and what both owners pin.
// Must never: count the stores: an opening leaves its own trace there, also one that was refused.
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { sha256Hex } from '../../protocol/digest.js'
import type { Place } from './place.js'

/** SHA-256 over names and bytes of the files, in hex. */
export function snapshotOf({ executorPin, host, requests, state }: Place): string {
  const paths = [
    executorPin,
    host.grant,
    host.kernelPublicKey,
    ...filesOf(requests),
    ...filesOf(join(state, 'resource')),
  ]
  return sha256Hex(Buffer.from(paths.map(path => `${path} ${digestOf(path)}\n`).join(''), 'utf8'))
}

function filesOf(folder: string): string[] {
  const paths = readdirSync(folder)
    .sort()
    .map(name => join(folder, name))
  return paths.flatMap(path => (statSync(path).isDirectory() ? filesOf(path) : isLock(path) ? [] : [path]))
}

/** Holds the number of the process that had it last. */
function isLock(path: string): boolean {
  return path.endsWith('/owner.lock')
}

function digestOf(path: string): string {
  return sha256Hex(readFileSync(path))
}
