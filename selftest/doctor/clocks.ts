// The two clocks: the wall clock for expiries in documents, the boot clock for deadlines, which must also run
// while the machine sleeps. And what the kernel reads them from.
// Source: clock_gettime(2) CLOCK_BOOTTIME, proc_uptime(5), Documentation/timers/timekeeping.
import { systemClock } from '../../native/clock.js'
import { NS_PER_MS } from '../../protocol/clock.js'
import { type Check, missing, ok, weaker } from './check.js'
import { kernelText } from './kernel-value.js'

const NAME = 'clocks'
const SOURCE = '/sys/devices/system/clocksource/clocksource0/current_clocksource'
/** They step with the timer interrupt: several milliseconds at a time. */
const COARSE = ['jiffies', 'refined-jiffies']
/** A machine without a battery clock starts in 1970; no certificate or capability is valid there. */
const EARLIEST_UNIX_MS = Date.UTC(2026, 0, 1)
const LARGEST_DRIFT_MS = 2_000

export interface ClocksFound {
  readonly source: string | null
  readonly unixMs: number
  readonly bootMs: number
  /** /proc/uptime, which counts sleep too; null when it cannot be read. */
  readonly uptimeMs: number | null
  readonly bootAdvances: boolean
}

export function findClocks(): ClocksFound {
  const first = systemClock.bootNs()
  const uptime = Number(kernelText('/proc/uptime')?.split(' ')[0] ?? Number.NaN) * 1_000
  const second = systemClock.bootNs()
  return {
    source: kernelText(SOURCE),
    unixMs: systemClock.unixMs(),
    bootMs: Number(first / NS_PER_MS),
    uptimeMs: Number.isNaN(uptime) ? null : uptime,
    bootAdvances: second > first,
  }
}

export function judgeClocks(found: ClocksFound): Check {
  const { bootAdvances, bootMs, source, unixMs, uptimeMs } = found
  const wall = new Date(unixMs).toISOString()
  const text = `${source ?? 'unknown source'}; CLOCK_BOOTTIME runs; wall clock ${wall}`
  if (!bootAdvances) return missing(NAME, 'CLOCK_BOOTTIME stands still', 'run on a kernel that keeps it')
  if (unixMs < EARLIEST_UNIX_MS)
    return missing(NAME, `wall clock ${wall}`, 'set the wall clock, and keep it by a time service')
  if (uptimeMs !== null && Math.abs(uptimeMs - bootMs) > LARGEST_DRIFT_MS) {
    const apart = `CLOCK_BOOTTIME and /proc/uptime are ${Math.round(Math.abs(uptimeMs - bootMs))} ms apart`
    return weaker(NAME, apart, 'run broker, kernel and hosts in one time namespace')
  }
  if (source !== null && COARSE.includes(source))
    return weaker(NAME, `${text}: it steps by milliseconds`, 'boot with another clocksource: clocksource=tsc')
  return ok(NAME, text)
}
