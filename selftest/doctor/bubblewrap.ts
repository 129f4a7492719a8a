// bwrap as the cage will take it: the same rules on owner, mode and folders, its version, its digest. It is run
// for its version only after those rules let it pass.
// Source: bwrap(1) --disable-userns (0.8).
import { execFileSync } from 'node:child_process'
import { lstatSync } from 'node:fs'
import { BUBBLEWRAP_PATH, findBubblewrap } from '../../cage/index.js'
import { overflowUid } from '../../system/peer.js'
import { type Check, missing, ok } from './check.js'
import { isAtLeast } from './platform.js'
import { plainSentence } from './plain-sentence.js'

const NAME = 'bubblewrap'
const MINIMUM = [0, 8]
const VERSION_TIMEOUT_MS = 5_000

export interface BubblewrapFound {
  readonly path: string
  /** Why the cage would not take it. */
  readonly refusal: string | null
  /** Whether root's files belong to nobody here: this is a user namespace without root. */
  readonly isRootUnmapped: boolean
  /** What it prints of itself; null when it was not run, or failed. */
  readonly versionText: string | null
  readonly sha256: string | null
}

export function findBubblewrapOf(path: string = BUBBLEWRAP_PATH): BubblewrapFound {
  const isRootUnmapped = lstatSync('/').uid === overflowUid()
  try {
    const bubblewrap = findBubblewrap(path)
    return { ...bubblewrap, refusal: null, isRootUnmapped, versionText: versionOf(bubblewrap.path) }
  } catch (error) {
    return { path, refusal: plainSentence(error), isRootUnmapped, versionText: null, sha256: null }
  }
}

function versionOf(path: string): string | null {
  try {
    const options = {
      cwd: '/',
      env: {},
      encoding: 'utf8',
      timeout: VERSION_TIMEOUT_MS,
      stdio: 'pipe',
    } as const
    return execFileSync(path, ['--version'], options).trim()
  } catch {
    return null
  }
}

export function judgeBubblewrap(bubblewrap: BubblewrapFound): Check {
  const { isRootUnmapped, path, refusal, sha256, versionText } = bubblewrap
  const install = 'install bubblewrap 0.8 or later: apt-get install bubblewrap'
  if (refusal?.includes('ENOENT') === true) return missing(NAME, `nothing at ${path}`, install)
  if (refusal !== null && isRootUnmapped)
    return missing(NAME, refusal, 'run outside of this user namespace, to which root does not belong')
  if (refusal !== null) {
    const remedy = `give ${path} back to root alone: chown root:root ${path} && chmod 0755 ${path}`
    return missing(NAME, refusal, remedy)
  }
  const version = /^bubblewrap (\d+(?:\.\d+)+)$/.exec(versionText ?? '')?.[1]
  if (version === undefined) return missing(NAME, `${path} does not say its version`, install)
  if (!isAtLeast(version, MINIMUM)) return missing(NAME, `${path} ${version}`, install)
  return ok(NAME, `${path} ${version}, root's alone, not setuid, sha256 ${sha256}`)
}
