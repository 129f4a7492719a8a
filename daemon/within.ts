// Owns waiting for something at most until a moment on the boot clock.
import type { Clock } from '../protocol/clock.js'
import { whenPassed } from '../system/deadline.js'

/** @returns what came, or undefined when the moment passed first. Rejects as the promise does. */
export function within<T>(promise: Promise<T>, clock: Clock, momentBootNs: bigint): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    const cancel = whenPassed(clock, momentBootNs, () => resolve(undefined))
    promise.then(
      value => {
        cancel()
        resolve(value)
      },
      (error: unknown) => {
        cancel()
        reject(error instanceof Error ? error : new Error('rejected without an error'))
      },
    )
  })
}
