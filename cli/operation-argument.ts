// How commands read the id of an operation and how many to list.
// Must never: guess. An id that is cut or spelt otherwise is refused before anybody is asked.
import { BrokerError } from '../protocol/errors.js'
import { given } from './output.js'

const MAXIMUM_LISTED = 1_000

/** @throws BrokerError `usage`. */
export function parseLimit(text: string): number {
  const limit = /^[1-9][0-9]{0,3}$/.test(text) ? Number(text) : Number.NaN
  if (limit <= MAXIMUM_LISTED) return limit
  throw new BrokerError(
    'usage',
    `--limit refused: expected a whole number from 1 to ${MAXIMUM_LISTED}, got ${given(text)}`,
  )
}

/** @throws BrokerError `usage`. */
export function parseOperationId(text: string): string {
  if (/^[0-9a-f]{64}$/.test(text)) return text
  throw new BrokerError(
    'usage',
    `operation refused: expected its id of 64 lower-case hex digits, got ${given(text)}`,
  )
}
