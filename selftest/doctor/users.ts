// Which uids keep the processes of an installation apart, and whether this process has a uid of its own at all.
// Source: user_namespaces(7) "Unmapped user and group IDs".
import { areSeparate, type Identities, SINGLE_USER_SENTENCE } from '../../system/identities.js'
import { overflowUid } from '../../system/peer.js'
import { type Check, missing, ok, weaker } from './check.js'

const NAME = 'users'

export interface UsersFound {
  readonly ownUid: number
  readonly overflowUid: number
  /** null without an installation. */
  readonly identities: Identities | null
}

export function findUsers(identities: Identities | null): UsersFound {
  return { ownUid: process.geteuid?.() ?? 0, overflowUid: overflowUid(), identities }
}

export function judgeUsers({ ownUid, overflowUid: overflow, identities }: UsersFound): Check {
  if (ownUid === overflow) {
    const remedy = 'run as a user that is mapped into this user namespace'
    return missing(NAME, `this process is uid ${ownUid}, which stands for everybody unmapped`, remedy)
  }
  if (identities === null) return ok(NAME, `this process is uid ${ownUid}`)
  const { broker, kernel, cage } = identities
  const unmapped = [broker, kernel, ...(cage === null ? [] : [cage])].some(({ uid }) => uid === overflow)
  const again = 'make another installation as root: chio init --state DIR'
  if (unmapped) return missing(NAME, `a process runs as the overflow uid ${overflow}`, again)
  if (cage !== null && cage.uid === 0) return missing(NAME, 'the cage runs as root', again)
  if (!areSeparate(identities))
    return weaker(NAME, SINGLE_USER_SENTENCE, 'install as root to keep the processes apart: chio init')
  if (cage !== null && [broker.uid, kernel.uid].includes(cage.uid))
    return missing(NAME, `the cage shares uid ${cage.uid} with a daemon`, again)
  return ok(NAME, `apart: broker ${broker.uid}, kernel ${kernel.uid}, cage ${cage?.uid ?? 'as its launcher'}`)
}
