// The decisive line: one real cage, launched, armed, looked at from outside, and run to its end with a program that
// does nothing, on a socket of our own. Whatever the other lines say, this one shows whether a tool can be caged.
import { type CageIdentity, cagePolicy, openCage, resolveTool } from '../../cage/index.js'
import { systemClock } from '../../native/clock.js'
import { closeDescriptor, socketPair } from '../../native/index.js'
import type { Identities } from '../../system/identities.js'
import { freeIds } from '../free-ids.js'
import { APPARMOR_REMEDY } from './apparmor-profile.js'
import { type Check, missing, ok } from './check.js'
import { plainSentence } from './plain-sentence.js'
import { isRestricted, setting, type UserNamespacesFound } from './user-namespaces.js'

const NAME = 'cage'
/** A frame of one byte: four of length, one of body. */
const FRAME = Uint8Array.of(0, 0, 0, 1, 0)

export interface CageFound {
  readonly refusal: string | null
  readonly tookMs: number
  readonly uid: number
}

export interface CageTrial {
  readonly identities: Identities | null
  readonly bubblewrapPath?: string
}

export async function findCage(trial: CageTrial): Promise<CageFound> {
  const identity = identityOf(trial.identities)
  const uid = identity?.uid ?? process.geteuid?.() ?? 0
  const startedBootNs = systemClock.bootNs()
  const refusal = await runNothing(identity, trial.bubblewrapPath)
  const tookMs = Number((systemClock.bootNs() - startedBootNs) / 1_000n) / 1_000
  return { refusal, tookMs, uid }
}

/** Root gives the cage a uid of its own: the installation's, or one that nobody has. */
function identityOf(identities: Identities | null): CageIdentity | null {
  if (process.geteuid?.() !== 0) return null
  if (identities !== null && identities.cage !== null) return identities.cage
  const [id = 0] = freeIds(1)
  return { uid: id, gid: id }
}

/** @returns what refused, or null. */
async function runNothing(identity: CageIdentity | null, bubblewrapPath?: string): Promise<string | null> {
  const [peer, stream] = socketPair('stream')
  try {
    const policy = cagePolicy({ ...resolveTool('true'), exec: 'once', identity })
    const waiting = await openCage(policy, bubblewrapPath === undefined ? {} : { bubblewrapPath })
    const armed = await waiting.handOff(stream, FRAME)
    const { exitCode, signal } = await armed.go().finished
    return exitCode === 0 ? null : `the program ended with ${signal ?? `code ${exitCode}`}`
  } catch (error) {
    return plainSentence(error)
  } finally {
    closeDescriptor(peer)
    closeDescriptor(stream)
  }
}

/** The words are those of bwrap and of the kernel; the remedy is the narrowest that is known for them. */
export function judgeCage({ refusal, tookMs, uid }: CageFound, namespaces: UserNamespacesFound): Check {
  if (refusal === null)
    return ok(NAME, `launched, armed, looked at and run to its end as uid ${uid} in ${Math.round(tookMs)} ms`)
  return missing(NAME, refusal, remedyOf(refusal, namespaces))
}

function remedyOf(refusal: string, namespaces: UserNamespacesFound): string {
  if (/proc on .*(not permitted|denied)/i.test(refusal))
    return 'this container masks /proc: run outside of it, or with --security-opt systempaths=unconfined'
  if (/uid map|RTM_NEWADDR|userns|namespace/i.test(refusal)) {
    if (isRestricted(namespaces)) return APPARMOR_REMEDY
    if (namespaces.maximum === 0 || /space left|ENOSPC/i.test(refusal))
      return setting('user.max_user_namespaces', 15_000)
    return 'something forbids user namespaces to bwrap: an AppArmor profile, or the filter of a container; run outside of it'
  }
  if (/^bwrap\b/.test(refusal)) return 'see the line of bubblewrap'
  return 'read the named layer and the lines above; nothing of the launch is left'
}
