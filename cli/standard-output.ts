// Owns what a command says on standard output, and that it is told when nobody got it: a full disk under
// `capability issue > grant` must not end with 0 and an empty file.
// Must never: throw, since the deed is done when it is told; change the code of a command that failed; call a reader
// that went away (`chio … | head`) a fault, or the outcome of a run certain.
// Source: write(2): EPIPE, ENOSPC, EIO. Node's console drops these faults, its streams throw them.
import { getSystemErrorName } from 'node:util'
import { exitCodeOfError } from '../host/exit-codes.js'
import { ERROR_CODES } from '../protocol/error-codes.js'
import { BrokerError } from '../protocol/errors.js'

let wasLost = false

/** Writes text with one newline behind it. A fault is told on standard error once and becomes the exit code. */
export function say(text: string): void {
  sayRaw(`${text}\n`)
}

/** The same without a newline of its own. */
export function sayRaw(text: string): void {
  try {
    process.stdout.write(text)
  } catch (error) {
    lost(error)
  }
}

/** Once a process: what a pipe or terminal refuses comes as an event, after the write. */
export function watchStandardOutput(): void {
  process.stdout.on('error', lost)
  process.stderr.on('error', () => undefined)
}

function lost(error: unknown): void {
  const { errno } = error as NodeJS.ErrnoException
  const name = errno === undefined ? 'another fault' : getSystemErrorName(errno)
  if (name === 'EPIPE' || wasLost) return
  wasLost = true
  const refusal = new BrokerError(
    'storage',
    `standard output refused: expected it to take everything that the command says, got ${name}; what was done stands`,
    { outcome: 'unknown' },
  )
  const { next } = ERROR_CODES.outcome_undetermined
  console.error(`chio: ${refusal.message}\n      code storage; outcome unknown; next: ${next}`)
  // At the very end: a command sets its own code after it spoke.
  process.once('exit', () => {
    if ((process.exitCode ?? 0) === 0) process.exitCode = exitCodeOfError(refusal)
  })
}
