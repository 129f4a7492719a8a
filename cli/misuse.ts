// What is said of a command that is used wrongly: one refusal as every other is, in text or as one document, with the
// command's own name. Also what is asked of the command line itself (help, version), as a document with --json.
// Must never: print what commander would; then there would be two languages, and text where JSON was asked for.
import type { Command, CommanderError } from 'commander'
import { BrokerError } from '../protocol/errors.js'
import { jsonLine } from './output.js'
import { say, sayRaw } from './standard-output.js'

/** What each of commander's refusals comes to, from the names that it quotes. */
const TERMS: Readonly<Record<string, (quoted: readonly string[], message: string) => string>> = {
  'commander.unknownOption': ([option]) => `expected an option that it has, got ${option}`,
  'commander.unknownCommand': ([name]) => `expected one of its commands, got ${name}`,
  'commander.missingArgument': ([name]) => `expected the argument <${name}>, got none`,
  'commander.optionMissingArgument': ([flags]) => `expected a value after ${flags}, got none`,
  'commander.missingMandatoryOptionValue': ([flags]) => `expected ${flags}, got a command without it`,
  'commander.excessArguments': (_quoted, message) =>
    message.replace(/^.*Expected ([0-9]+) (arguments?) but got ([0-9]+)\.$/, 'expected $1 $2, got $3'),
  'commander.invalidArgument': ([flags, value], message) =>
    `expected for ${flags} one of ${/Allowed choices are (.*)\.$/.exec(message)?.[1] ?? 'its choices'}, got ${value}`,
}

/** Makes every command below say wrong use as a refusal, and with `json` nothing but one document. */
export function refuseMisuse(program: Command, json: boolean): void {
  for (const command of [program, ...program.commands]) {
    if (command !== program) refuseMisuse(command, json)
    command.configureOutput({ outputError: () => undefined, ...(json ? silence : { writeOut: sayRaw }) })
    command.exitOverride(error => {
      if (json && error.exitCode === 0) say(jsonLine(askedDocument(command, error)))
      const wasShown = error.exitCode === 0 || (error.code === 'commander.help' && !json)
      throw wasShown ? error : misuseOf(command, error)
    })
  }
}

const silence = { writeErr: () => undefined, writeOut: () => undefined }

/** What `--help` and `--version` print beside `--json`. */
function askedDocument(command: Command, { code, message }: CommanderError) {
  return code === 'commander.version'
    ? { schema: 'chio.version.v1', version: message }
    : { schema: 'chio.help.v1', command: nameOf(command), text: command.helpInformation() }
}

function misuseOf(command: Command, { code, message }: CommanderError): BrokerError {
  return new BrokerError('usage', `${nameOf(command)} refused: ${termsOf(command, code, message)}`)
}

function termsOf(command: Command, code: string, message: string): string {
  const [line = '', suggestion] = message.split('\n')
  const quoted = [...line.matchAll(/'([^']*)'/g)].map(([, text = '']) => text)
  // Asked for by itself, JSON is no command either.
  if (code === 'commander.help' || (command.commands.length > 0 && quoted[0] === '--json')) {
    return `expected one of its commands (${command.commands.map(each => each.name()).join(', ')}), got none`
  }
  const terms =
    TERMS[code]?.(quoted, line) ?? `expected what its help shows, got ${line.replace(/^error: /, '')}`
  return suggestion === undefined ? terms : `${terms} ${suggestion}`
}

/** As it is called after `chio`, which stands before every refusal: `capability issue`. */
function nameOf(command: Command): string {
  const { parent } = command
  return parent === null || parent.parent === null ? command.name() : `${nameOf(parent)} ${command.name()}`
}
