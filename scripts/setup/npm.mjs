// Owns how npm is run from here: the same npm that runs us, a cache it can write, development packages always,
// native parts compiled from source against the headers of this very Node.
import { accessSync, constants, existsSync, realpathSync } from 'node:fs'
import { homedir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { RECORDS } from './checkout.mjs'
import { SetupFailure } from './failure.mjs'
import { findProgram } from './system-packages.mjs'

/**
 * Program and arguments for one npm command.
 * @param {readonly string[]} npmArguments
 * @returns {string[]}
 */
export function npmCommand(npmArguments) {
  const runningNpm = process.env['npm_execpath']
  if (runningNpm !== undefined && basename(runningNpm) === 'npm-cli.js' && existsSync(runningNpm)) {
    return [process.execPath, runningNpm, ...npmArguments]
  }
  const npm = findProgram('npm')
  if (npm === undefined)
    throw new SetupFailure('npm is not on PATH: install the one that belongs to this Node')
  return [npm, ...npmArguments]
}

/**
 * The environment for npm.
 * `build_from_source`: a downloaded binary has no digest in the lock file, the compiled one has its source there.
 * `nodedir`: without it node-gyp fetches headers from outside.
 * @param {NodeJS.ProcessEnv} inherited
 * @returns {NodeJS.ProcessEnv}
 */
export function npmEnvironment(inherited = process.env) {
  const headers = dirname(dirname(realpathSync(process.execPath)))
  const hasHeaders = existsSync(join(headers, 'include', 'node', 'node_api.h'))
  return {
    ...inherited,
    npm_config_build_from_source: 'true',
    npm_config_update_notifier: 'false',
    ...(hasHeaders && inherited['npm_config_nodedir'] === undefined ? { npm_config_nodedir: headers } : {}),
    ...(isWritable(cacheFolder(inherited)) ? {} : { npm_config_cache: join(RECORDS, 'npm-cache') }),
  }
}

/** @param {NodeJS.ProcessEnv} inherited */
function cacheFolder(inherited) {
  return inherited['npm_config_cache'] ?? join(inherited['HOME'] ?? homeOrRoot(), '.npm')
}

function homeOrRoot() {
  try {
    return homedir()
  } catch {
    return '/' // a uid without an entry in passwd: not writable there, so the cache goes beside the checkout
  }
}

/**
 * Whether a folder, or the nearest one above it that exists, can be written.
 * @param {string} path
 * @returns {boolean}
 */
export function isWritable(path) {
  if (!existsSync(path) && dirname(path) !== path) return isWritable(dirname(path))
  try {
    accessSync(path, constants.W_OK | constants.X_OK)
    return true
  } catch {
    return false
  }
}
