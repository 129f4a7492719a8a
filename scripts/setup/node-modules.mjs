// Owns node_modules: whether it is what package-lock.json says and loads under this Node, and `npm ci` where not.
import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { logPath, ROOT } from './checkout.mjs'
import { runLongStep } from './long-step.mjs'
import { npmCommand, npmEnvironment } from './npm.mjs'

/** @typedef {{ version?: string, integrity?: string, optional?: boolean }} LockedPackage */

/**
 * The first package that is not installed as locked, or undefined when all are. Optional ones may be absent
 * (they belong to other platforms); what somebody installed besides is not our business.
 * @param {string} root
 * @returns {string | undefined}
 */
export function firstStalePackage(root) {
  const installedPath = join(root, 'node_modules', '.package-lock.json')
  if (!existsSync(installedPath)) return 'node_modules'
  const locked = readPackages(join(root, 'package-lock.json'))
  const installed = readPackages(installedPath)
  const stale = Object.entries(locked).find(
    ([place, wanted]) => place !== '' && !isInstalled(root, place, wanted, installed[place]),
  )
  return stale?.[0]
}

/**
 * @param {string} path
 * @returns {Record<string, LockedPackage | undefined>}
 */
function readPackages(path) {
  /** @type {{ packages?: Record<string, LockedPackage> }} */
  const lock = JSON.parse(readFileSync(path, 'utf8'))
  return lock.packages ?? {}
}

/**
 * @param {string} root
 * @param {string} place
 * @param {LockedPackage | undefined} wanted
 * @param {LockedPackage | undefined} installed
 */
function isInstalled(root, place, wanted, installed) {
  if (installed === undefined) return wanted?.optional === true
  const sameBytes = installed.version === wanted?.version && installed.integrity === wanted?.integrity
  return sameBytes && existsSync(join(root, place, 'package.json'))
}

/** The packages that compile something, and what they make. */
const NATIVE_PARTS = [
  'better-sqlite3/build/Release/better_sqlite3.node',
  'unix-dgram/build/Release/unix_dgram.node',
]

/**
 * Whether every package with a native part was compiled for this Node and this processor.
 * @param {string} root
 */
export function nativePackagesLoad(root) {
  const load = createRequire(join(root, 'package.json'))
  try {
    for (const part of NATIVE_PARTS) load(part)
    return true
  } catch {
    return false // never compiled, interrupted, or compiled for another Node: `npm ci` mends each
  }
}

/** Installs the locked packages where they are not there. */
export async function provideNodeModules() {
  if (firstStalePackage(ROOT) === undefined && nativePackagesLoad(ROOT)) return false
  await runLongStep({
    title: 'installing the locked packages (npm ci; better-sqlite3 compiles here, which takes over a minute)',
    patience: 'better-sqlite3 is compiling, one large C file',
    command: npmCommand([
      'ci',
      '--include=dev',
      '--ignore-scripts=false',
      '--foreground-scripts',
      '--no-progress',
    ]),
    environment: npmEnvironment(),
    folder: ROOT,
    logPath: logPath('npm-ci'),
  })
  return true
}
