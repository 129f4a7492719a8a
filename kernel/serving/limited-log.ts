// Owns: the kernel's log as peers may fill it: so many warnings of one kind a second, the rest counted.
// Must never: hold back an error or what the kernel says by itself.
// Source: a log line is a write that may wait for its reader; the conversations must not.
import type { Clock } from '../../protocol/clock.js'
import { LineBudget } from '../../system/line-budget.js'
import type { KernelLog } from '../kernel-context.js'

export function limitedLog(log: KernelLog, clock: Clock): KernelLog {
  const budget = new LineBudget(clock)
  return event => {
    if (event.level !== 'warn') return log(event)
    const heldBack = budget.take(`${event.event} ${String(event['reason'])}`)
    if (heldBack === undefined) return
    log(heldBack === 0 ? event : { ...event, heldBack })
  }
}
