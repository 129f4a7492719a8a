// How a command speaks: text for people on standard output, or one JSON document with --json; refusals as
// a sentence on standard error with the stable code, and the exit code that the error table fixes.
import { escapeForTerminal } from '../cage/index.js'
import { exitCodeOfError } from '../host/exit-codes.js'
import { ERROR_CODES } from '../protocol/error-codes.js'
import { BrokerError, errorDocument, isBrokerError } from '../protocol/errors.js'
import { say } from './standard-output.js'

/** Whether a command line asks for JSON. What stands after `--` is a tool's own. */
export function asksForJson(argv: readonly string[]): boolean {
  const end = argv.indexOf('--')
  return (end === -1 ? argv : argv.slice(0, end)).includes('--json')
}

/** Options that every command takes. */
export interface CommonOptions {
  readonly state?: string
  readonly json?: boolean
}

/** Prints a document: as JSON with --json, else as the given lines, in which nothing moves a terminal. */
export function print(
  options: CommonOptions,
  document: { readonly schema: string; readonly [member: string]: unknown },
  lines: readonly string[],
): void {
  say(options.json === true ? jsonLine(document) : lines.map(visible).join('\n'))
}

/** What JSON itself leaves unescaped and a terminal may obey: C1 controls, marks that reorder or hide text. */
const UNESCAPED = /[\u007f-\u009f\u2028\u2029\p{Cf}]/gu

/** One line of JSON of the same value that a terminal shows as it is. */
export function jsonLine(document: object): string {
  return JSON.stringify(document).replace(UNESCAPED, character =>
    Array.from(
      { length: character.length },
      (_, unit) => `\\u${character.charCodeAt(unit).toString(16).padStart(4, '0')}`,
    ).join(''),
  )
}

/** Controls and marks of foreign text, made visible: a terminal must not obey a provider or a tool. */
export function visible(text: string): string {
  return escapeForTerminal(Buffer.from(text, 'utf8'))
}

/** Foreign text with every line marked as whose words it is, so that none of it passes for ours. */
export function marked(whose: string, text: string, stream?: string): string[] {
  const shown = text.trimEnd()
  const mark = stream === undefined ? `${whose} says` : `${whose} says (${stream})`
  return shown === '' ? [] : shown.split('\n').map(line => `${mark} | ${line}`)
}

/** Prints an error and sets the exit code. An unexpected one keeps its stack: it is ours to mend. */
export function fail(error: unknown, json: boolean): void {
  const known = isSystemError(error) ? systemRefusal(error) : error
  if (!isBrokerError(known)) {
    const stack = known instanceof Error ? (known.stack ?? known.message) : String(known)
    console.error(json ? jsonLine({ ...errorDocument(OWN_FAULT), stack }) : stack)
    process.exitCode = 1
    return
  }
  const { code, message, outcome, receiptId = null } = known
  const { next } = ERROR_CODES[code]
  if (json) console.error(jsonLine(errorDocument(known)))
  else
    console.error(
      `chio: ${visible(message)}\n      code ${code}; outcome ${outcome.replace('_', ' ')}; ${receiptText(receiptId)}next: ${next}`,
    )
  process.exitCode = exitCodeOfError(known)
}

/** What happened to whatever was under way is not known: it is said so. */
const OWN_FAULT = new BrokerError('invariant', 'command refused: expected no fault of its own, got one', {
  outcome: 'unknown',
})

/** What the system refused to do with a file that somebody named: not ours to mend. */
function isSystemError(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && 'syscall' in error && !isBrokerError(error)
}

function systemRefusal(error: NodeJS.ErrnoException): BrokerError {
  if (error.syscall === 'uv_cwd') {
    const gone = `working folder refused: expected one that stands, got ${error.code}; go to another folder`
    return new BrokerError('storage', gone, { outcome: 'not_started', cause: error })
  }
  // A read of what is open already does not name its file: of a directory, for one.
  const sentence = `${error.path ?? 'file'} refused: expected ${error.syscall} to be permitted and possible, got ${error.code}`
  return new BrokerError('storage', sentence, { outcome: 'not_started', cause: error })
}

/** Where there is one, it is the proof of the refusal. */
function receiptText(receiptId: string | null): string {
  return receiptId === null ? '' : `receipt ${receiptId}; `
}

/** Longest part of an argument that a refusal repeats. */
const REPEATED_CHARACTERS = 40

/** What somebody wrote on the command line, as a refusal repeats it. Never for what may be a secret. */
export function given(text: string | undefined): string {
  if (text === undefined || text === '') return 'nothing'
  return JSON.stringify(text.length > REPEATED_CHARACTERS ? `${text.slice(0, REPEATED_CHARACTERS)}…` : text)
}

/** Milliseconds for a person: three digits are enough. */
export function milliseconds(value: number): string {
  return value >= 100 ? `${Math.round(value)} ms` : `${value.toPrecision(3)} ms`
}
