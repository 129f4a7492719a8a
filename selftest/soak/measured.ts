// Owns what a process holds at a moment: descriptors, handles of its event loop, memory after a collection. A process
// that forbids dumps can be looked into by itself alone, so each one measures itself and says so.
// Must never: be part of a daemon that serves an installation.
// Source: proc_pid_fd(5); node:process getActiveResourcesInfo; node --expose-gc.
import { readdirSync } from 'node:fs'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** One look at one process. */
export interface Measured {
  readonly descriptors: number
  /** Sockets, timers, pending requests. */
  readonly handles: number
  readonly heapBytes: number
  readonly rssBytes: number
}

/** Measures this very process. */
export function measured(): Measured {
  collectGarbage()
  const { heapUsed, external, rss } = process.memoryUsage()
  return {
    descriptors: readdirSync('/proc/self/fd').length,
    handles: process.getActiveResourcesInfo().length,
    heapBytes: heapUsed + external,
    rssBytes: rss,
  }
}

let collect: (() => void) | undefined

function collectGarbage(): void {
  if (collect === undefined) {
    setFlagsFromString('--expose-gc')
    collect = runInNewContext('gc') as () => void
  }
  // What a first pass finalizes is freed by the second.
  collect()
  collect()
}
