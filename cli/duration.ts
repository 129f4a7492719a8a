// Spans of time as an operator writes them: 30s, 5m, 1h, 7d.
import { BrokerError } from '../protocol/errors.js'

const SECONDS: Record<string, number> = { s: 1, m: 60, h: 3_600, d: 86_400 }
/** A year: far beyond any grant that should be reviewed, and no overflow anywhere. */
const LONGEST_SECONDS = 366 * 86_400
const MAXIMUM_SHOWN_CHARACTERS = 40

/** @throws BrokerError `usage` naming the option. */
export function parseSeconds(text: string, option: string, longestSeconds = LONGEST_SECONDS): number {
  const match = /^([1-9][0-9]{0,8})(s|m|h|d)$/.exec(text)
  const seconds = match === null ? Number.NaN : Number(match[1]) * (SECONDS[match[2] as string] as number)
  if (seconds <= longestSeconds) return seconds
  const longest = longestSeconds === LONGEST_SECONDS ? '366d' : `${longestSeconds}s`
  const got = JSON.stringify(text.slice(0, MAXIMUM_SHOWN_CHARACTERS))
  throw new BrokerError(
    'usage',
    `${option} refused: expected a span such as 30s, 5m, 1h or 7d, at most ${longest}, got ${got}`,
  )
}
