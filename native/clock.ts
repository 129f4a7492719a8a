/**
 * The one place that reads time. Wall clock for dates in documents, boot clock for every deadline: it also runs
 * while the machine sleeps, and no step of the wall clock moves it. Handed in everywhere as a Clock.
 * Source: clock_gettime(2) CLOCK_BOOTTIME.
 */
import { readFileSync } from 'node:fs'
import { addon } from './addon.js'

export function bootTimeNs(): bigint {
  return addon.bootTimeNs()
}

export const systemClock: { readonly unixMs: () => number; readonly bootNs: () => bigint } = {
  unixMs: () => Date.now(),
  bootNs: bootTimeNs,
}

/** Names this boot of the machine: boot times of two boots are not compared. Source: random(4) boot_id. */
export function bootIdentity(): string {
  return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
}
