/**
 * As whom a cage runs, by the kernel's own numbers. Root launches under another uid, always; anyone else as itself.
 * Uid 0 and the overflow uid are refused: the first is root also behind a user namespace, the second stands for
 * everyone who is not mapped.
 * Source: user_namespaces(7), /proc/sys/kernel/overflowuid.
 */
import { readFileSync } from 'node:fs'
import { refusedCheck } from './refusal.js'
import type { CageIdentity } from './policy.js'

/** The conventional `nobody`, refused also where the overflow uid is another. */
const NOBODY = 65_534

function overflowId(kind: 'overflowuid' | 'overflowgid'): number {
  return Number.parseInt(readFileSync(`/proc/sys/kernel/${kind}`, 'latin1'), 10)
}

function requireOwnId(title: 'uid' | 'gid', id: number): void {
  const overflow = overflowId(title === 'uid' ? 'overflowuid' : 'overflowgid')
  const usable = Number.isSafeInteger(id) && id > 0 && id < 0xffff_ffff && id !== NOBODY && id !== overflow
  if (usable) return
  throw refusedCheck(`cage ${title}`, `an id of its own, not 0, ${NOBODY} or ${overflow}`, String(id))
}

/** The kernel ids that the tool will have. */
export function cageIdentity(asked: CageIdentity | null): CageIdentity {
  const own = { uid: process.geteuid!(), gid: process.getegid!() }
  if (own.uid === 0 && asked === null) {
    throw refusedCheck('cage uid', 'an identity in the policy when root launches', 'none')
  }
  const identity = asked ?? own
  requireOwnId('uid', identity.uid)
  requireOwnId('gid', identity.gid)
  if (own.uid !== 0 && (identity.uid !== own.uid || identity.gid !== own.gid)) {
    throw refusedCheck(
      'cage uid',
      `${own.uid}:${own.gid}, the launching user`,
      `${identity.uid}:${identity.gid}`,
    )
  }
  return identity
}
