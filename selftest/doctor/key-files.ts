// The key files of an installation, as far as this user can see them: owner, mode, links, length. The same rules
// by which a daemon takes a key; no key is opened here.
import { dirname, join } from 'node:path'
import { readdirSync } from 'node:fs'
import { KEY_BYTES } from '../../protocol/limits.js'
import { hostLayout } from '../../system/layout.js'
import { type Check, missing, ok } from './check.js'
import type { Installation } from './installation.js'
import { type Look, lookAt } from './look.js'

const NAME = 'keys'
const KEY_MODE = 0o600

export interface KeyFileFound {
  readonly path: string
  readonly ownerUid: number
  readonly look: Look
}

export function findKeyFiles(installation: Installation): KeyFileFound[] {
  const { administratorUid, identities, layout } = installation
  const { broker, kernel } = identities
  const files: [path: string, ownerUid: number][] = [
    [layout.broker.masterKey, broker.uid],
    [layout.broker.receiptKey, broker.uid],
    ...Object.values(layout.kernel.keys).map((path): [string, number] => [path, kernel.uid]),
    [layout.adminKey, administratorUid],
    ...hostUids(installation).flatMap((uid): [string, number][] => {
      const { callerKey, journalKey } = hostLayout(layout.state, uid)
      return [
        [callerKey, uid],
        [journalKey, uid],
      ]
    }),
  ]
  return files.map(([path, ownerUid]) => ({ path, ownerUid, look: lookAt(path) }))
}

/** All clients for whoever may list them; otherwise this user, if it is one. */
function hostUids({ isClient, layout }: Installation): number[] {
  const ownUid = process.geteuid?.() ?? 0
  try {
    return readdirSync(join(layout.state, 'host')).map(Number).filter(Number.isInteger)
  } catch {
    return isClient ? [ownUid] : []
  }
}

export function judgeKeyFiles(files: readonly KeyFileFound[]): Check {
  const hidden = files.filter(({ look }) => look.kind === 'hidden')
  const faults = files.flatMap(file => secretFileFault(file, KEY) ?? [])
  const [first] = faults
  if (first !== undefined) {
    const more = faults.length > 1 ? `, and ${faults.length - 1} more` : ''
    return missing(NAME, `${first.text}${more}`, first.remedy)
  }
  const seen = `${files.length - hidden.length} key files, each its owner's, 0600, one link`
  if (hidden.length === 0) return ok(NAME, seen)
  return ok(
    NAME,
    `${seen}; ${hidden.length} are not ours to see`,
    'run it as root, or as their owner, for the rest',
  )
}

const KEY: SecretFileRule = {
  bytes: { maximum: KEY_BYTES, minimum: KEY_BYTES },
  restore: 'put the key back from your backup: a new one makes a new installation',
}

/** What a file of a secret must hold, and what to do where it is gone. */
export interface SecretFileRule {
  readonly bytes: { readonly minimum: number; readonly maximum: number }
  readonly restore: string
}

/** What is wrong with the file of a secret, as far as it can be seen from outside; nothing of what is hidden. */
export function secretFileFault(
  { look, ownerUid, path }: KeyFileFound,
  { bytes: { maximum, minimum }, restore }: SecretFileRule,
): { text: string; remedy: string } | undefined {
  if (look.kind === 'hidden') return undefined
  if (look.kind === 'absent') return { text: `${path} is missing`, remedy: restore }
  if (look.kind !== 'file') return { text: `${path} is no regular file`, remedy: restore }
  if (look.uid !== ownerUid)
    return {
      text: `${path} belongs to uid ${look.uid}, not ${ownerUid}`,
      remedy: `chown ${ownerUid} ${path}`,
    }
  if (look.mode !== KEY_MODE)
    return { text: `${path} has mode 0${look.mode.toString(8)}, not 0600`, remedy: `chmod 0600 ${path}` }
  if (look.links !== 1) {
    const remedy = `find and remove the other name: find ${dirname(path)} -samefile ${path}`
    return { text: `${path} has ${look.links} links`, remedy }
  }
  if (look.bytes < minimum || look.bytes > maximum) {
    const fitting = minimum === maximum ? `${minimum}` : `${minimum} to ${maximum}`
    return { text: `${path} has ${look.bytes} bytes, not ${fitting}`, remedy: restore }
  }
  return undefined
}
