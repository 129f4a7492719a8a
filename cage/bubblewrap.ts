/**
 * Which bwrap starts the cage: one absolute path that only root can change, not setuid, with its digest for the
 * record. Never searched for on PATH, and never another program when this one will not do.
 * Source: bwrap(1); path_resolution(7).
 */
import { createHash } from 'node:crypto'
import { lstatSync, readFileSync, realpathSync, statSync, type BigIntStats, type Stats } from 'node:fs'
import { dirname } from 'node:path'
import { refusedBy, refusedCheck } from './refusal.js'

export const BUBBLEWRAP_PATH = '/usr/bin/bwrap'

export interface Bubblewrap {
  readonly path: string
  readonly sha256: string
}

const WRITABLE_BY_OTHERS = 0o022
const SET_ID = 0o6000

function requireRootOnly(path: string, stats: Stats): void {
  if (stats.uid !== 0) throw refusedCheck('bwrap owner', `root for ${path}`, `uid ${stats.uid}`)
  if ((stats.mode & WRITABLE_BY_OTHERS) === 0) return
  // A sticky folder lets nobody replace what root owns.
  if (stats.isDirectory() && (stats.mode & 0o1000) !== 0) return
  throw refusedCheck(
    'bwrap mode',
    `${path} writable by root alone`,
    `mode ${(stats.mode & 0o7777).toString(8)}`,
  )
}

function requireAncestors(path: string): void {
  for (let folder = dirname(path); ; folder = dirname(folder)) {
    requireRootOnly(folder, lstatSync(folder))
    if (folder === '/') return
  }
}

function requireProgram(path: string): void {
  const stats = lstatSync(path)
  if (!stats.isFile()) throw refusedCheck('bwrap', `a regular file at ${path}`, 'something else')
  requireRootOnly(path, stats)
  if ((stats.mode & SET_ID) !== 0)
    throw refusedCheck('bwrap mode', `${path} without set-id bits`, 'a set-id file')
}

const digests = new Map<string, string>()

/** The digest of the bytes, kept as long as the file is the same file unchanged. */
function digestOf(path: string, stats: BigIntStats): string {
  const key = [path, stats.dev, stats.ino, stats.size, stats.mtimeNs, stats.ctimeNs].join(':')
  const known = digests.get(key)
  if (known !== undefined) return known
  const digest = createHash('sha256').update(readFileSync(path)).digest('hex')
  digests.set(key, digest)
  return digest
}

/** @throws CageRefusal when the path is missing, or not root's alone. */
export function findBubblewrap(path: string = BUBBLEWRAP_PATH): Bubblewrap {
  if (!path.startsWith('/')) throw refusedCheck('bwrap path', 'an absolute path', 'a relative one')
  try {
    requireAncestors(path)
    const real = realpathSync(path)
    requireAncestors(real)
    requireProgram(real)
    return { path: real, sha256: digestOf(real, statSync(real, { bigint: true })) }
  } catch (error) {
    throw refusedBy(error, 'bwrap')
  }
}
