// What a path looks like from outside: its kind, owner, mode, links, size. It never opens what it looks at, and
// says `hidden` where a folder above denies us the look.
import { lstatSync, type Stats } from 'node:fs'

export type Look =
  | { readonly kind: 'absent' | 'hidden' }
  | {
      readonly kind: 'file' | 'directory' | 'socket' | 'other'
      readonly uid: number
      readonly mode: number
      readonly links: number
      readonly bytes: number
    }

export function lookAt(path: string): Look {
  try {
    const stats = lstatSync(path)
    const { uid, mode, nlink, size } = stats
    return { kind: kindOf(stats), uid, mode: mode & 0o7777, links: nlink, bytes: size }
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    return { kind: code === 'ENOENT' || code === 'ENOTDIR' ? 'absent' : 'hidden' }
  }
}

function kindOf(stats: Stats): 'file' | 'directory' | 'socket' | 'other' {
  if (stats.isFile()) return 'file'
  if (stats.isDirectory()) return 'directory'
  return stats.isSocket() ? 'socket' : 'other'
}
