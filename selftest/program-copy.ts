// Code that another uid runs must be reachable by it. Where a folder above this installation denies that,
// a root-owned copy of exactly what runs (compiled code, native parts, production modules) is made.
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { sha256Hex } from '../protocol/digest.js'
import { BrokerError } from '../protocol/errors.js'
import { packageRoot } from '../native/index.js'

/** What a native module was made from is most of its size, and nothing of it runs. */
const MADE_FROM =
  /\/node_modules\/better-sqlite3\/(deps|src|build\/(deps|Release\/(obj|obj\.target|\.deps)))$/
/** Written last: a copy without it was never finished. */
const STAMP = 'copied-from'
/** Part of the stamp: a copy that was made with the modes of its source is made again. */
const MODES = 'modes of our own'
const OPEN_TO_ALL = 0o755
const READ_BY_ALL = 0o644
const ANY_EXECUTE = 0o111
const RELEASE = join('native', 'build', 'Release')
const NATIVE_PARTS = ['chio_native.node', 'cage-init', 'chio-exec', 'cage-probe']

/** Whether every folder above a path lets others pass. */
export function isReachableByOthers(path: string): boolean {
  for (let folder = path; folder !== '/'; folder = dirname(folder)) {
    if ((statSync(folder).mode & 0o001) === 0) return false
  }
  return true
}

/**
 * The folder from which other uids can run this program.
 * @param place where a copy goes when one is needed; a 0755 folder is made there.
 * @returns the package itself, or the copy with `copied` true.
 */
export function reachableProgram(place: string): { root: string; copied: boolean } {
  assertNodeReachable()
  const root = packageRoot()
  if (isReachableByOthers(root)) return { root, copied: false }
  const copy = join(place, 'program')
  refreshCopy(root, copy)
  return { root: copy, copied: true }
}

/** Makes the copy unless it is whole and of exactly this program: an upgrade must reach whoever runs the copy. */
export function refreshCopy(root: string, copy: string): void {
  if (!isStamped(copy, stampOf(root))) renewCopy(root, copy)
}

/** Makes the copy in place of whatever stands there, so that nothing which was changed in it remains. */
export function renewCopy(root: string, copy: string): void {
  const stamp = stampOf(root)
  const fresh = `${copy}.new`
  withReadableFiles(() => {
    rmSync(fresh, { recursive: true, force: true })
    copyProgram(root, fresh)
    writeFileSync(join(fresh, STAMP), stamp)
    rmSync(copy, { recursive: true, force: true })
    renameSync(fresh, copy)
  })
}

function isStamped(copy: string, stamp: string): boolean {
  const path = join(copy, STAMP)
  return existsSync(path) && readFileSync(path, 'utf8') === stamp
}

/** Changes with every file that is compiled or built here; the modules are named by their lock. */
function stampOf(root: string): string {
  const built = readdirSync(join(root, 'dist'), { recursive: true, encoding: 'utf8' }).sort()
  const paths = [...built.map(path => join('dist', path)), ...NATIVE_PARTS.map(part => join(RELEASE, part))]
  const seen = paths.map(path => {
    const { mtimeMs, size } = statSync(join(root, path))
    return `${path} ${size} ${mtimeMs}`
  })
  return sha256Hex(
    Buffer.from(`${MODES}\n${seen.join('\n')}\n${readFileSync(join(root, 'package-lock.json'), 'utf8')}`),
  )
}

function assertNodeReachable(): void {
  if (isReachableByOthers(dirname(process.execPath))) return
  throw new BrokerError(
    'custody',
    `node at ${process.execPath} refused: other users cannot reach it; install Node where they can, such as /usr/local`,
  )
}

/** Our processes run with a private umask; these files must be readable by others. */
function withReadableFiles(copy: () => void): void {
  const privateMask = process.umask(0o022)
  try {
    copy()
  } finally {
    process.umask(privateMask)
  }
}

/**
 * Copies exactly what runs; `copy` must not exist. A copy comes with the modes of its source, which may let everybody
 * write: so nobody else can enter before all of them are ours.
 */
export function copyProgram(root: string, copy: string): void {
  mkdirSync(copy, { mode: 0o700 })
  const plain = { recursive: true, dereference: true }
  cpSync(join(root, 'package.json'), join(copy, 'package.json'))
  cpSync(join(root, 'dist'), join(copy, 'dist'), plain)
  for (const part of NATIVE_PARTS) cpSync(join(root, RELEASE, part), join(copy, RELEASE, part))
  const filter = (path: string): boolean => !MADE_FROM.test(path)
  for (const path of productionModules(root)) cpSync(join(root, path), join(copy, path), { ...plain, filter })
  giveOurModes(copy)
}

/** Whatever the modes of the source were: all may read, none but the owner may write. The folder itself is last. */
function giveOurModes(copy: string): void {
  for (const entry of readdirSync(copy, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name)
    const isOpen = entry.isDirectory() || (statSync(path).mode & ANY_EXECUTE) !== 0
    chmodSync(path, isOpen ? OPEN_TO_ALL : READ_BY_ALL)
  }
  chmodSync(copy, OPEN_TO_ALL)
}

/** Folders of the modules that the lock file does not mark as development only. */
function productionModules(root: string): string[] {
  const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { dev?: boolean; optional?: boolean }>
  }
  return Object.entries(lock.packages)
    .filter(([path, entry]) => path.startsWith('node_modules/') && entry.dev !== true)
    .map(([path]) => path)
    .filter(path => existsSync(join(root, path)))
}
