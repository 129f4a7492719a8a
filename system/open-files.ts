// Owns how many files a process of ours may have open, and the least that it needs. Loaded before everything else: with
// fewer, Node fails inside its own module loader, without a word of ours.
// Source: setrlimit(2) RLIMIT_NOFILE, proc_pid_limits(5). Node raises the soft limit to the hard one when it starts.
import { readFileSync } from 'node:fs'

/** Modules while they load, stores, 64 connections, and the slot 255 of a cage's one exec. */
export const LEAST_OPEN_FILES = 256

/** The hard limit of this process. */
export function openFilesLimit(): number {
  const hard = /^Max open files\s+\S+\s+(\S+)/m.exec(readFileSync('/proc/self/limits', 'latin1'))?.[1]
  return hard === undefined || hard === 'unlimited' ? Number.POSITIVE_INFINITY : Number(hard)
}
