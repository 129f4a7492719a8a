// Owns the operator's log: one JSON line a refusal and an ending, with identifiers, codes and lengths.
// Must never: write a byte that a peer sent, a header, a body, a token or a path inside the vault.
import { type DestinationStream, destination, pino } from 'pino'
import type { Clock } from '../protocol/clock.js'
import { isBrokerError } from '../protocol/errors.js'
import { LineBudget } from '../system/line-budget.js'
import { Refused } from './refused.js'

export type LogFields = Readonly<Record<string, string | number | boolean | null | undefined>>

export interface BrokerLog {
  info(fields: LogFields, message: string): void
  warn(fields: LogFields, message: string): void
  error(fields: LogFields, message: string): void
}

const STANDARD_ERROR = 2

/** JSON lines, written at once: the last line before a crash is the one that is needed. */
export function openLog(clock: Clock, to: DestinationStream = standardError()): BrokerLog {
  const timestamp = (): string => `,"at":"${new Date(clock.unixMs()).toISOString()}"`
  return pino({ base: { name: 'chio-brokerd' }, timestamp }, to)
}

function standardError(): DestinationStream {
  return destination({ fd: STANDARD_ERROR, sync: true })
}

/**
 * The same log, in which what peers provoke takes so many lines a second and no more: a line is a write, and a write
 * may wait for its reader.
 */
export function limitedLog(log: BrokerLog, clock: Clock): BrokerLog {
  const budget = new LineBudget(clock)
  return {
    info: (fields, message) => log.info(fields, message),
    warn(fields, message) {
      const heldBack = budget.take(`${message} ${String(fields['reason'])}`)
      if (heldBack === undefined) return
      log.warn(heldBack === 0 ? fields : { ...fields, heldBack }, message)
    },
    error: (fields, message) => log.error(fields, message),
  }
}

/** What is said of an error: our own sentence where it is ours; of a foreign one its name, code and place. */
export function faultFields(error: unknown): LogFields {
  if (error instanceof Refused) return { reason: error.reason, code: error.code, sentence: error.message }
  if (isBrokerError(error)) return { code: error.code, sentence: error.message }
  if (!(error instanceof Error)) return { fault: typeof error }
  const { code } = error as NodeJS.ErrnoException
  return { fault: error.name, code, place: placeOf(error) }
}

/** First lines of the stack without its message, which may quote what it was about. */
function placeOf(error: Error): string {
  const frames = (error.stack ?? '').split('\n').filter(line => /^\s+at /.test(line))
  return frames
    .slice(0, 3)
    .map(line => line.trim())
    .join(' | ')
}
