// Owns what the architecture rules look at: every file of this checkout that is, or could be, committed.
// It must never read build products or installed packages.
import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

export interface SourceFile {
  /** Relative to the root, with slashes. */
  readonly path: string
  readonly text: string
}

const NEVER_COMMITTED = ['.git', 'node_modules', 'dist', '.setup', 'build', 'peers', 'out']

/** Reads the tree: what git tracks or would add; without git, everything but build products. */
export function readTree(root: string): SourceFile[] {
  const paths = existsSync(join(root, '.git')) ? gitPaths(root) : walk(root, '')
  return paths
    .filter(path => existsSync(join(root, path)))
    .map(path => ({ path, text: readFileSync(join(root, path), 'utf8') }))
}

function gitPaths(root: string): string[] {
  const options = ['-c', `safe.directory=${root}`, '-C', root]
  const listed = ['ls-files', '-z', '--cached', '--others', '--exclude-standard']
  return execFileSync('git', [...options, ...listed], { encoding: 'utf8' })
    .split('\0')
    .filter(Boolean)
}

function walk(root: string, folder: string): string[] {
  return readdirSync(join(root, folder), { withFileTypes: true })
    .filter(entry => !NEVER_COMMITTED.includes(entry.name))
    .flatMap(entry => {
      const path = folder === '' ? entry.name : `${folder}/${entry.name}`
      return entry.isDirectory() ? walk(root, path) : [path]
    })
}

/** First folder of a path; empty for a file at the root. */
export function topFolder(path: string): string {
  return path.includes('/') ? path.slice(0, path.indexOf('/')) : ''
}

/** TypeScript that the import table governs: not the configuration files at the root. */
export function isGovernedTypeScript(path: string): boolean {
  return path.endsWith('.ts') && topFolder(path) !== ''
}
