// Which installation a command works on: --state, $CHIO_STATE, else the first of the user's and the
// system's state folders that exists.
import { existsSync } from 'node:fs'
import { homedir } from 'node:os'
import { basename, dirname, join, resolve } from 'node:path'
import { type Layout, layoutOf } from '../system/layout.js'

/** Where the installation of the machine is, and where the units look for it. */
export const SYSTEM_STATE = '/var/lib/chio'
const SYSTEM_RUN = '/run/chio'
/** One installation for each tenant, as the unit templates name them. */
const TENANTS_STATE = '/var/lib/chio-tenants'
const TENANTS_RUN = '/run/chio-tenants'

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

/** The layout of a state folder; the system's, and those of its tenants, have their sockets below /run. */
export function layoutOfState(state: string): Layout {
  if (state === SYSTEM_STATE) return layoutOf(state, SYSTEM_RUN)
  return dirname(state) === TENANTS_STATE
    ? layoutOf(state, join(TENANTS_RUN, basename(state)))
    : layoutOf(state)
}

/** Where `init` puts an installation when no --state says otherwise. */
export function defaultState(environment: NodeJS.ProcessEnv = process.env): string {
  return process.geteuid?.() === 0 ? SYSTEM_STATE : userState(environment)
}
