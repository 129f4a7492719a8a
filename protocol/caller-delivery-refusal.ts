// Owns the four ways in which a document of caller delivery is refused, told apart by code: its shape, what it is
// bound to, its signature, its interval. Must never repeat a value of the document: outputs are private.
// Source: the caller delivery errors of the kernel protocol.
import type { ErrorCode } from './error-codes.js'
import { BrokerError, isBrokerError } from './errors.js'

const CODES = {
  binding: 'caller_delivery_binding',
  expired: 'caller_delivery_expired',
  shape: 'caller_delivery_shape',
  signature: 'caller_delivery_signature',
} as const satisfies Record<string, ErrorCode>

/** Which check refused: malformed or over a bound, not as pinned, not signed, outside of its interval. */
export type CallerDeliveryCheck = keyof typeof CODES

/** @param sentence what was refused, expected and got, by member; never a value of it. */
export function callerDeliveryRefusal(
  check: CallerDeliveryCheck,
  sentence: string,
  cause?: unknown,
): BrokerError {
  return new BrokerError(CODES[check], sentence, { cause, outcome: 'not_started' })
}

/** The check that an error is the refusal of; undefined for every other error. */
export function callerDeliveryCheckOf(error: unknown): CallerDeliveryCheck | undefined {
  if (!isBrokerError(error)) return undefined
  const checks = Object.keys(CODES) as CallerDeliveryCheck[]
  return checks.find(check => CODES[check] === error.code)
}

/**
 * What an encoder or a decoder says of a document becomes the refusal of its shape.
 * @throws BrokerError `caller_delivery_shape`.
 */
export function inShape<T>(what: string, act: () => T): T {
  try {
    return act()
  } catch (cause) {
    if (callerDeliveryCheckOf(cause) !== undefined) throw cause
    const said = cause instanceof Error ? cause.message : `${what} refused: expected its canonical form`
    throw callerDeliveryRefusal('shape', said, cause)
  }
}

/** @throws BrokerError `caller_delivery_shape` for bytes over the bound. */
export function assertWithin(bytes: Uint8Array, maximumBytes: number, what: string): void {
  if (bytes.length <= maximumBytes) return
  throw callerDeliveryRefusal(
    'shape',
    `${what} refused: expected at most ${maximumBytes} bytes, got ${bytes.length}`,
  )
}
