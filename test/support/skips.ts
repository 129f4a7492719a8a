// Owns the only reasons for which a test may be skipped. A skipped test carries one of these sentences in its
// name or in its note (`context.skip(SKIP_REASONS.needsRoot)`); any other skip fails the run, so that a test
// that quietly stopped running is seen.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const SKIP_REASONS = {
  vectorsAbsent: 'skipped: the shared vectors are absent, CHIO_VECTORS names no folder',
  needsRoot: 'skipped: needs root',
  needsNoRoot: 'skipped: needs a user other than root',
  needsFullRun: 'skipped: runs with CHIO_FULL=1',
  kernelLacksPeerPidfd: 'skipped: this kernel has no SO_PEERPIDFD',
} as const

export type SkipReason = (typeof SKIP_REASONS)[keyof typeof SKIP_REASONS]

/**
 * Whether a skipped test says one of the allowed reasons.
 * @param texts the full name of the test and its note, if it has one
 */
export function hasAllowedSkipReason(texts: readonly (string | undefined)[]): boolean {
  return Object.values(SKIP_REASONS).some(reason => texts.some(text => text?.includes(reason) === true))
}

const repositoryRoot = fileURLToPath(new URL('../..', import.meta.url))

/** The folder of the shared vectors (not part of this repository), or undefined where it is absent. */
export function vectorsFolder(): string | undefined {
  const folder = process.env['CHIO_VECTORS'] ?? join(repositoryRoot, '..', 'shared', 'vectors')
  return existsSync(folder) ? folder : undefined
}
