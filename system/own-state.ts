// Owns whether the documents of a state folder are about that folder. Paths are written into them when it is made, so a
// copy, or a folder that was moved, would serve or ask the original under its own name.
// Must never: judge paths as text where both exist: a link to a folder is that folder.
import { existsSync, realpathSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { BrokerError } from '../protocol/errors.js'
import { stateOfSocket } from './layout.js'

/**
 * Refuses sockets of another state folder than the one that names them. Sockets that an operator laid elsewhere pass.
 * @param what the document, as `pins.json`.
 * @throws BrokerError `state_elsewhere`.
 */
export function assertOwnSockets(what: string, state: string, socketPaths: readonly string[]): void {
  for (const path of socketPaths) {
    const named = stateOfSocket(path)
    if (named !== null && !isSame(named, state))
      refuse(what, `sockets of ${state}`, `those of ${named}`, named)
  }
}

/**
 * Refuses a daemon's configuration that lies beside a store and names another one. One that lies apart from any store,
 * as an operator may keep it, passes.
 * @param storeFile name of the daemon's store in its state directory.
 * @throws BrokerError `state_elsewhere`.
 */
export function assertOwnStore(
  configFile: string,
  storeFile: string,
  {
    stateDirectory,
    socketPaths,
  }: { readonly stateDirectory: string; readonly socketPaths: readonly string[] },
): void {
  const own = dirname(real(configFile))
  if (!existsSync(join(own, storeFile))) return
  if (!isSame(own, stateDirectory)) {
    const made = dirname(stateDirectory)
    refuse('configuration stateDirectory', `${own}, in which the file lies`, stateDirectory, made)
  }
  assertOwnSockets('configuration', dirname(own), socketPaths)
}

function refuse(what: string, expected: string, got: string, made: string): never {
  throw new BrokerError(
    'state_elsewhere',
    `${what} refused: expected ${expected}, got ${got}; an installation serves where it was made, and a copy of it would serve the original: name it with --state ${made}, or make another with chio init`,
  )
}

function isSame(one: string, other: string): boolean {
  return real(one) === real(other)
}

/** The path itself where nothing is any more: the original may be gone. */
function real(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    return resolve(path)
  }
}
