// Owns where things of this checkout lie: its root, the folder of the set-up's own records, its logs.
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const ROOT = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '')

/** The set-up's own folder: logs, stamps, and a package cache where the home folder can't hold one. */
export const RECORDS = join(ROOT, '.setup')

/** @param {string} name */
export function logPath(name) {
  return join(RECORDS, 'log', `${name}.log`)
}
