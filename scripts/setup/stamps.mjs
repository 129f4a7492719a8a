// Owns what was already built: a digest of the sources beside what the outputs looked like afterwards. An output
// that is missing or was written by something else since is built again; a touched but equal source is not.
import { createHash } from 'node:crypto'
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'

/** @typedef {{ sources: string, outputs: string }} Stamp */

/**
 * Every file below some folders, sorted, relative to the root.
 * @param {string} root
 * @param {readonly string[]} folders
 * @param {(path: string) => boolean} accept
 * @returns {string[]}
 */
export function filesBelow(root, folders, accept) {
  const found = folders
    .filter(folder => existsSync(join(root, folder)))
    .flatMap(folder => listFolder(root, folder))
  return found.filter(accept).sort()
}

/**
 * @param {string} root
 * @param {string} folder
 * @returns {string[]}
 */
function listFolder(root, folder) {
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap(entry => {
    const path = `${folder}/${entry.name}`
    return entry.isDirectory() ? listFolder(root, path) : [path]
  })
}

/**
 * Digest of names and contents, with what else decides the result.
 * @param {string} root
 * @param {readonly string[]} paths
 * @param {string} circumstances
 * @returns {string}
 */
export function digestOfSources(root, paths, circumstances) {
  const hash = createHash('sha256').update(circumstances)
  for (const path of paths) {
    const content = readFileSync(join(root, path))
    hash.update(`\0${path}\0${content.length}\0`).update(content)
  }
  return hash.digest('hex')
}

/**
 * Size and time of each output; undefined when one is missing.
 * @param {string} root
 * @param {readonly string[]} outputs
 * @returns {string | undefined}
 */
export function lookOfOutputs(root, outputs) {
  const looks = outputs.map(path => {
    const stat = statSync(join(root, path), { throwIfNoEntry: false })
    return stat === undefined ? undefined : `${path} ${stat.size} ${stat.mtimeMs}`
  })
  return looks.includes(undefined) ? undefined : looks.join('\n')
}

/**
 * @param {string} path
 * @returns {Stamp | undefined}
 */
export function readStamp(path) {
  if (!existsSync(path)) return undefined
  try {
    return JSON.parse(readFileSync(path, 'utf8'))
  } catch {
    return undefined // a stamp cut short proves nothing: build again
  }
}

/**
 * @param {string} path
 * @param {Stamp} stamp
 */
export function writeStamp(path, stamp) {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(`${path}.new`, JSON.stringify(stamp))
  renameSync(`${path}.new`, path)
}

/**
 * Whether a stamp still describes both ends.
 * @param {string} path
 * @param {string} sources
 * @param {string | undefined} outputs
 * @returns {boolean}
 */
export function isUpToDate(path, sources, outputs) {
  const stamp = readStamp(path)
  return stamp !== undefined && stamp.sources === sources && stamp.outputs === outputs
}
