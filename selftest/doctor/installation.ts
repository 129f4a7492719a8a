// Whether there is an installation where the command looks, and whether this user may look at it. Without one the
// machine alone is judged; that is no fault.
import { lstatSync } from 'node:fs'
import { dirname } from 'node:path'
import { isBrokerError } from '../../protocol/errors.js'
import { type Identities, readIdentities } from '../../system/identities.js'
import { hostLayout, type Layout } from '../../system/layout.js'
import { type Check, missing, ok } from './check.js'
import { lookAt } from './look.js'

const NAME = 'installation'

/** An installation that can be judged further. */
export interface Installation {
  readonly layout: Layout
  readonly identities: Identities
  /** Owner of the state folder: root, or the single user. */
  readonly administratorUid: number
  /** Whether `init` made a host folder for this uid. */
  readonly isClient: boolean
}

export type InstallationFound =
  | { readonly kind: 'none' | 'hidden'; readonly state: string }
  | { readonly kind: 'broken'; readonly state: string; readonly sentence: string }
  | { readonly kind: 'made'; readonly state: string; readonly installation: Installation }

export function findInstallation(layout: Layout): InstallationFound {
  const { state } = layout
  const look = lookAt(layout.identities)
  if (look.kind === 'hidden') return { kind: 'hidden', state }
  if (look.kind === 'absent' && lookAt(layout.pins).kind === 'absent') return { kind: 'none', state }
  try {
    const identities = readIdentities(layout.identities)
    const administratorUid = lstatSync(dirname(layout.identities)).uid
    const own = hostLayout(state, process.geteuid?.() ?? 0).directory
    const isClient = lookAt(own).kind === 'directory'
    return { kind: 'made', state, installation: { layout, identities, administratorUid, isClient } }
  } catch (error) {
    if (!isBrokerError(error)) throw error
    return { kind: 'broken', state, sentence: error.message }
  }
}

export function judgeInstallation(found: InstallationFound): Check {
  switch (found.kind) {
    case 'none':
      return ok(NAME, `none at ${found.state}: the machine alone was judged`, 'to make one: chio init')
    case 'hidden':
      return missing(NAME, `${found.state} belongs to another user`, 'name your own: chio doctor --state DIR')
    case 'broken':
      return missing(NAME, found.sentence, 'make another one: chio init --state DIR')
    case 'made':
      return ok(NAME, found.state)
  }
}
