// Owns the programs that the system itself has to provide: which, from which Debian package, and how they get
// here. Installs only as root and only through apt; everybody else is told what to run.
import { accessSync, constants, statSync } from 'node:fs'
import { join } from 'node:path'
import { logPath, ROOT } from './checkout.mjs'
import { SetupFailure } from './failure.mjs'
import { runLongStep } from './long-step.mjs'

/** Program → Debian package. */
export const NEEDED_PROGRAMS = new Map([
  ['bwrap', 'bubblewrap'],
  ['python3', 'python3'],
  ['make', 'make'],
  ['g++', 'g++'],
  ['strace', 'strace'],
  ['setpriv', 'util-linux'],
  ['unshare', 'util-linux'],
  ['openssl', 'openssl'],
  ['systemd-analyze', 'systemd'],
])

/**
 * Where a program lies on PATH, or undefined.
 * @param {string} program
 * @param {string} searchPath
 * @returns {string | undefined}
 */
export function findProgram(program, searchPath = process.env['PATH'] ?? '') {
  const candidates = searchPath
    .split(':')
    .filter(Boolean)
    .map(folder => join(folder, program))
  return candidates.find(isExecutableFile)
}

/** @param {string} path */
function isExecutableFile(path) {
  try {
    accessSync(path, constants.X_OK)
    return statSync(path).isFile()
  } catch {
    return false // absent or not executable: the next folder of PATH may have it
  }
}

/** @returns {string[]} the Debian packages whose programs are not here, each once */
function missingPackages() {
  const missing = [...NEEDED_PROGRAMS].filter(([program]) => findProgram(program) === undefined)
  return [...new Set(missing.map(([, debianPackage]) => debianPackage))]
}

/**
 * Makes sure that every needed program is here.
 * @throws {SetupFailure} with the exact command when it may not install them itself
 */
export async function provideSystemPackages() {
  const missing = missingPackages()
  if (missing.length === 0) return false
  const aptGet = findProgram('apt-get')
  if (process.getuid?.() !== 0 || aptGet === undefined) throw new SetupFailure(whatToRun(missing))
  await installThroughApt(aptGet, missing)
  const stillMissing = missingPackages()
  if (stillMissing.length > 0) throw new SetupFailure(whatToRun(stillMissing))
  return true
}

/** @param {readonly string[]} packages */
function whatToRun(packages) {
  const names = packages.join(' ')
  return `missing from this system: ${names}; run "sudo apt-get update && sudo apt-get install -y ${names}" and then this again`
}

/**
 * @param {string} aptGet
 * @param {readonly string[]} packages
 */
async function installThroughApt(aptGet, packages) {
  const environment = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
  const lockPatience = ['-q', '-o', 'DPkg::Lock::Timeout=300']
  const common = { folder: ROOT, environment }
  await runLongStep({
    ...common,
    title: 'reading the package lists (apt-get update)',
    command: [aptGet, ...lockPatience, 'update'],
    logPath: logPath('apt-update'),
  })
  await runLongStep({
    ...common,
    title: `installing ${packages.join(', ')} (apt-get install)`,
    command: [aptGet, ...lockPatience, 'install', '-y', '--no-install-recommends', ...packages],
    logPath: logPath('apt-install'),
  })
}
