// Which installation a command works on: --state, $CHIO_STATE, else the first of the user's and the
// system's state folders that exists.
import { existsSync } from 'node:fs'
import { userInfo } from 'node:os'
import { isAbsolute, join, normalize, resolve } from 'node:path'
import { BrokerError } from '../protocol/errors.js'
import { SYSTEM_STATE } from '../system/layout.js'

export { layoutOfState, SYSTEM_STATE } from '../system/layout.js'

/**
 * The user's own state folder; undefined without a home. A relative path in the environment is none (XDG Base Directory
 * Specification); without one in HOME, the user database says where home is.
 */
function ownState(environment: NodeJS.ProcessEnv): string | undefined {
  const own = named(environment, 'XDG_STATE_HOME')
  if (own !== undefined) return join(own, 'chio')
  const home = named(environment, 'HOME') ?? homeInDatabase()
  return home === undefined ? undefined : join(home, '.local', 'state', 'chio')
}

function named(environment: NodeJS.ProcessEnv, variable: string): string | undefined {
  const path = environment[variable]
  return path !== undefined && isAbsolute(path) ? normalize(path) : undefined
}

/** Undefined for a uid that the user database does not know. */
function homeInDatabase(): string | undefined {
  try {
    const { homedir } = userInfo()
    return isAbsolute(homedir) ? homedir : undefined
  } catch {
    return undefined
  }
}

function homeless(): BrokerError {
  return new BrokerError(
    'usage',
    'state refused: expected an absolute path in HOME, or a home in the user database, got neither; name the folder: --state',
  )
}

/** The folder that the environment names; an empty name is none. */
export function namedState(environment: NodeJS.ProcessEnv = process.env): string | undefined {
  return environment['CHIO_STATE'] || undefined
}

/** Finds the state folder of a command. @param flag value of --state. */
export function findState(flag: string | undefined, environment: NodeJS.ProcessEnv = process.env): string {
  const named = flag ?? namedState(environment)
  if (named !== undefined) return resolve(named)
  const own = ownState(environment)
  if (own !== undefined && existsSync(own)) return own
  if (existsSync(SYSTEM_STATE)) return SYSTEM_STATE
  if (own === undefined) throw homeless()
  return own
}

/** Where `init` puts an installation when no --state says otherwise. */
export function defaultState(environment: NodeJS.ProcessEnv = process.env): string {
  if (process.geteuid?.() === 0) return SYSTEM_STATE
  const own = ownState(environment)
  if (own === undefined) throw homeless()
  return own
}
