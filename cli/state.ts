// Which installation a command works on: --state, $CHIO_STATE, else the first of the user's and the
// system's state folders that exists.
import { existsSync } from 'node:fs'
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { SYSTEM_STATE } from '../system/layout.js'

export { layoutOfState, SYSTEM_STATE } from '../system/layout.js'

/** The user's own state folder (XDG Base Directory Specification). */
export function userState(environment: NodeJS.ProcessEnv = process.env): string {
  return join(environment['XDG_STATE_HOME'] ?? join(homedir(), '.local', 'state'), 'chio')
}

/** The folder that the environment names; an empty name is none. */
export function namedState(environment: NodeJS.ProcessEnv = process.env): string | undefined {
  return environment['CHIO_STATE'] || undefined
}

/** Finds the state folder of a command. @param flag value of --state. */
export function findState(flag: string | undefined, environment: NodeJS.ProcessEnv = process.env): string {
  const named = flag ?? namedState(environment)
  if (named !== undefined) return resolve(named)
  const own = userState(environment)
  return existsSync(own) || !existsSync(SYSTEM_STATE) ? own : SYSTEM_STATE
}

/** Where `init` puts an installation when no --state says otherwise. */
export function defaultState(environment: NodeJS.ProcessEnv = process.env): string {
  return process.geteuid?.() === 0 ? SYSTEM_STATE : userState(environment)
}
