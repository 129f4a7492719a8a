// Owns how the example speaks: lines for people, or one document with --json; a refusal as a sentence with its stable
// code, and the exit code of the error table.
// Must never: let foreign text move a terminal.
import { escapeForTerminal } from '../../cage/index.js'
import { exitCodeOfError } from '../../host/exit-codes.js'
import { ERROR_CODES } from '../../protocol/error-codes.js'
import { BrokerError, errorDocument, isBrokerError } from '../../protocol/errors.js'

export interface CommonOptions {
  readonly state: string
  readonly json?: boolean
}

/** Prints the document with --json, else the lines. */
export function say(
  { json }: CommonOptions,
  document: { readonly schema: string; readonly [member: string]: boolean | number | string },
  lines: readonly string[],
): void {
  console.log(json === true ? JSON.stringify(document) : lines.map(shown).join('\n'))
}

/** Says why a command did not do what was asked, and sets the exit code. */
export function sayRefusal(error: unknown, json: boolean): void {
  const known = isSystemError(error) ? systemRefusal(error) : error
  if (!isBrokerError(known)) throw error
  const { code, message, outcome } = known
  const words = outcome.replace('_', ' ')
  const text = `review-note: ${shown(message)}\n             code ${code}; outcome ${words}; next: ${ERROR_CODES[code].next}`
  console.error(json ? JSON.stringify(errorDocument(known)) : text)
  process.exitCode = exitCodeOfError(known)
}

function shown(text: string): string {
  return escapeForTerminal(Buffer.from(text, 'utf8'))
}

function isSystemError(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && 'syscall' in error && !isBrokerError(error)
}

function systemRefusal(error: NodeJS.ErrnoException): BrokerError {
  // A read of what is open already does not name its file: of a directory, for one.
  const sentence = `${error.path ?? 'file'} refused: expected ${error.syscall} to be possible, got ${error.code}`
  return new BrokerError('storage', sentence, { cause: error, outcome: 'not_started' })
}
