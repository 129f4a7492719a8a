// Owns: the sentence with which custody of a file, a directory, a socket or a key is refused.
// Must never: name a byte of what is in custody.
import { BrokerError } from '../protocol/errors.js'

/** @param subject what was judged: a path, or the name of a key. */
export function refused(subject: string, expected: string, got: string, cause?: unknown): BrokerError {
  return new BrokerError('custody', `custody of ${subject} refused: expected ${expected}, got ${got}`, {
    outcome: 'not_started',
    cause,
  })
}

export function modeText(stats: { readonly mode: number }): string {
  return `mode 0${(stats.mode & 0o7777).toString(8)}`
}

export function errorCode(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? 'an error'
}
