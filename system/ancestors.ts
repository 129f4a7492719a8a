// Owns: who could put another file in the place of ours: the folders above it, up to the root.
// Must never: follow a symbolic link while it judges; the real path is what was judged.
// Source: path_resolution(7), sticky bit in inode(7).
import { lstatSync, realpathSync, type Stats } from 'node:fs'
import { dirname, isAbsolute } from 'node:path'
import { errorCode, modeText, refused } from './custody-refusal.js'
import { overflowUid } from './peer.js'

/** Refuses a directory that somebody but root, we and the owner could have replaced. */
export function assertAncestors(directory: string, ownerUid: number): void {
  if (!isAbsolute(directory)) {
    throw new TypeError(`directory: expected an absolute path, got ${JSON.stringify(directory)}`)
  }
  const real = realPath(directory)
  if (real !== directory)
    throw refused(directory, 'a path without symbolic links', `one that leads to ${real}`)
  for (let path = dirname(directory); ; path = dirname(path)) {
    assertAncestor(path, lstatSync(path), ownerUid)
    if (path === '/') return
  }
}

function assertAncestor(path: string, stats: Stats, ownerUid: number): void {
  if (!stats.isDirectory()) throw refused(path, 'a directory', 'another kind of file')
  const owners = [0, ownerUid, process.geteuid?.() ?? 0]
  if (!owners.includes(stats.uid) || stats.uid === overflowUid()) {
    throw refused(path, `owner uid ${[...new Set(owners)].join(' or ')}`, `${stats.uid}`)
  }
  const isSticky = (stats.mode & 0o1000) !== 0
  if ((stats.mode & 0o002) !== 0 && !isSticky) throw refused(path, 'no writing by others', modeText(stats))
  if ((stats.mode & 0o020) !== 0 && !isSticky && !isPrivateGroup(stats)) {
    throw refused(path, 'no writing by a group', `${modeText(stats)} with gid ${stats.gid}`)
  }
}

/** Distributions give each user a group of the same number; root's group is root's. */
function isPrivateGroup(stats: Stats): boolean {
  return stats.gid === 0 || stats.gid === stats.uid
}

function realPath(directory: string): string {
  try {
    return realpathSync(directory)
  } catch (error) {
    throw refused(directory, 'a directory to reach', errorCode(error), error)
  }
}
