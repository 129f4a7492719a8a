// Owns: what a service manager says to a process in its environment: where to report, how often to be alive, which
// sockets it holds for it. Read once and taken out, so that no child hears it and reports in our name.
// Must never: leave one of the names behind, or guess at a value that is malformed.
// Source: sd_notify(3), sd_watchdog_enabled(3), sd_listen_fds(3).
import { BrokerError } from '../protocol/errors.js'

const NAMES = [
  'NOTIFY_SOCKET',
  'WATCHDOG_USEC',
  'WATCHDOG_PID',
  'LISTEN_PID',
  'LISTEN_FDS',
  'LISTEN_FDNAMES',
  'LISTEN_PIDFDID',
] as const
type Name = (typeof NAMES)[number]
type Taken = Partial<Record<Name, string>>

export interface ServiceEnvironment {
  /** A path, or `@` and an abstract name; null without a service manager. */
  readonly notifySocket: string | null
  /** Within which the manager wants to hear a sign of life; null when it does not. */
  readonly watchdogMs: number | null
  /** As they were set; `system/activation.ts` judges them. */
  readonly listen: { readonly pid: string | undefined; readonly fds: string | undefined } | null
}

/** Takes every name of the protocol out of the environment. @throws BrokerError `invalid_configuration`. */
export function takeServiceEnvironment(environment: NodeJS.ProcessEnv = process.env): ServiceEnvironment {
  const taken: Taken = {}
  for (const name of NAMES) {
    const value = environment[name]
    if (value !== undefined && value !== '') taken[name] = value
    delete environment[name]
  }
  const { LISTEN_FDS: fds, LISTEN_PID: pid } = taken
  return {
    notifySocket: taken.NOTIFY_SOCKET ?? null,
    watchdogMs: watchdogMs(taken),
    listen: fds === undefined && pid === undefined ? null : { pid, fds },
  }
}

/** One for another process is not ours: its own pid was told to it and inherited by us. */
function watchdogMs({ WATCHDOG_PID: pid, WATCHDOG_USEC: microseconds }: Taken): number | null {
  if (microseconds === undefined || (pid !== undefined && pid !== `${process.pid}`)) return null
  const milliseconds = Number(microseconds) / 1_000
  if (/^[1-9][0-9]{0,15}$/.test(microseconds) && milliseconds >= 1) return milliseconds
  throw new BrokerError(
    'invalid_configuration',
    'WATCHDOG_USEC refused: expected a whole number of microseconds from 1000, got another text; see WatchdogSec= of the unit',
  )
}
