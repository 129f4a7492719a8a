// Owns: identifiers that sort by the time they were made.
// Must never: be taken for a secret or for an order: two of one millisecond stand in no order.
// Source: RFC 9562 section 5.7.
import { randomBytes } from 'node:crypto'

const TIMESTAMP_DIGITS = 12
const VARIANT = 0x8000
const VARIANT_RANDOM = 0x3fff

/** @param unixMs milliseconds since 1970, of the moment of making. */
export function uuidV7(unixMs: number): string {
  const random = randomBytes(10)
  const time = Math.floor(unixMs).toString(16).padStart(TIMESTAMP_DIGITS, '0')
  const sequence = (random.readUInt16BE(0) & 0x0fff).toString(16).padStart(3, '0')
  const variant = (VARIANT | (random.readUInt16BE(2) & VARIANT_RANDOM)).toString(16)
  const node = random.subarray(4).toString('hex')
  return `${time.slice(0, 8)}-${time.slice(8)}-7${sequence}-${variant}-${node}`
}
