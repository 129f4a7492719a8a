// Owns reading, in a test, which system calls a unit allows, and which a process made: systemd's own sets against what
// strace counted.
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { valuesOf } from './unit-file.js'

/** A set with all that it names, sets in it included. */
function expand(name: string): string[] {
  if (!name.startsWith('@')) return [name]
  const { stdout } = spawnSync('systemd-analyze', ['syscall-filter', name], { encoding: 'utf8' })
  const members = stdout.split('\n').flatMap(line => /^ {4}(@?[a-z][a-z0-9_-]*)$/.exec(line)?.[1] ?? [])
  return members.flatMap(expand)
}

/** What the filter lines of a unit leave, in their order. */
export function allowedSystemCalls(unit: string): ReadonlySet<string> {
  const allowed = new Set<string>()
  for (const value of valuesOf(unit, 'SystemCallFilter')) {
    const isDenied = value.startsWith('~')
    for (const call of value.replace('~', '').split(' ').flatMap(expand)) {
      if (isDenied) allowed.delete(call)
      else allowed.add(call)
    }
  }
  return allowed
}

/** The calls in a summary of `strace -c`. */
export function countedSystemCalls(file: string): string[] {
  const lines = readFileSync(file, 'utf8').split('\n')
  return lines
    .flatMap(line => /^ *[\d.]+ .* ([a-z][a-z0-9_]*)$/.exec(line)?.[1] ?? [])
    .filter(name => name !== 'total')
}
