// Whether this user may reach the two sockets: named as a client, and in both groups in this very session. A login
// that is older than `init` lacks the groups until the next one.
// Source: credentials(7) "Supplementary group IDs", initgroups(3).
import { execFileSync } from 'node:child_process'
import { userInfo } from 'node:os'
import { allowedEnvironment } from '../../system/environment.js'
import { areSeparate } from '../../system/identities.js'
import { type Check, missing, ok } from './check.js'
import type { Installation } from './installation.js'

const NAME = 'groups'

export interface GroupsFound {
  readonly ownUid: number
  readonly userName: string | null
  readonly isClient: boolean
  readonly isAdministrator: boolean
  /** The groups of both daemons; empty where all is one uid. */
  readonly needed: readonly number[]
  /** Of this process. */
  readonly active: readonly number[]
  /** Of this user in the user database: those of the next login. */
  readonly listed: readonly number[]
}

export function findGroups(installation: Installation): GroupsFound {
  const { administratorUid, identities, isClient } = installation
  const ownUid = process.geteuid?.() ?? 0
  const userName = nameOfUser()
  return {
    ownUid,
    userName,
    isClient,
    isAdministrator: ownUid === administratorUid,
    needed: areSeparate(identities) ? [identities.broker.gid, identities.kernel.gid] : [],
    active: [process.getegid?.() ?? 0, ...(process.getgroups?.() ?? [])],
    listed: userName === null ? [] : groupsOf(userName),
  }
}

function nameOfUser(): string | null {
  try {
    return userInfo().username
  } catch {
    return null
  }
}

/** `id` asks the whole user database, as the next login will. */
function groupsOf(userName: string): number[] {
  try {
    const options = { encoding: 'utf8', env: allowedEnvironment(), stdio: 'pipe' } as const
    const text = execFileSync('id', ['-G', '--', userName], options)
    return text.trim().split(' ').map(Number)
  } catch {
    return []
  }
}

export function judgeGroups(found: GroupsFound): Check {
  const { active, isAdministrator, isClient, listed, needed, ownUid, userName } = found
  if (!isClient && isAdministrator)
    return ok(NAME, `uid ${ownUid} administers; it is no client and runs no tools here`)
  if (!isClient) {
    const remedy = 'clients are named when an installation is made: chio init --client USER'
    return missing(NAME, `uid ${ownUid} is no client of this installation`, remedy)
  }
  if (needed.length === 0) return ok(NAME, 'one uid: no group is needed')
  if (ownUid === 0) return ok(NAME, 'root is a client and needs no group')
  const lacking = needed.filter(gid => !active.includes(gid))
  if (lacking.length === 0) return ok(NAME, `a client, in the groups ${needed.join(' and ')} of the daemons`)
  const unlisted = lacking.filter(gid => !listed.includes(gid))
  if (unlisted.length === 0)
    return missing(NAME, `group ${lacking.join(', ')} not active in this session`, 'log in again')
  const join = `usermod --append --groups ${unlisted.join(',')} ${userName ?? 'USER'}`
  return missing(NAME, `not in group ${unlisted.join(', ')}`, `as root: ${join}; then log in again`)
}
