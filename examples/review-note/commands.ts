// Owns the command line of the example: four commands, what each prints, and how it ends.
// Must never: decide anything; each command has a file of its own.
import { Command, CommanderError, InvalidArgumentError } from 'commander'
import { ERROR_CODES } from '../../protocol/error-codes.js'
import { BrokerError } from '../../protocol/errors.js'
import type { Cutpoint } from '../../system/cutpoints.js'
import { startupHygiene } from '../../system/startup.js'
import { actIn } from './act.js'
import { authorize } from './authorize.js'
import { execute } from './execute.js'
import { initialise } from './init.js'
import { DEFAULT_STATE } from './place.js'
import { report } from './report.js'
import { type CommonOptions, say, sayRefusal } from './speech.js'

const GRANTED_INVOCATIONS = 4
/** As many nonces as the kernel of the example keeps. */
const MAXIMUM_INVOCATIONS = 16
/** An outcome that its caller was not told. */
const REPLY_DROPPED = 75

/**
 * Runs the command that the arguments name, and sets the exit code.
 * @param atCutpoint called at every durable boundary; a crash test ends the process there.
 */
export async function reviewNote(
  argv: readonly string[],
  atCutpoint: Cutpoint = () => undefined,
): Promise<void> {
  try {
    startupHygiene({ environment: {} })
    await programOf(atCutpoint).parseAsync([...argv])
  } catch (error) {
    if (error instanceof CommanderError && error.exitCode === 0) return
    const json = argv.includes('--json')
    // Without a command it has shown its help already.
    if (error instanceof CommanderError && error.code === 'commander.help' && !json) {
      process.exitCode = ERROR_CODES.usage.exitCode
    } else sayRefusal(error instanceof CommanderError ? misuse(error) : error, json)
  }
}

function programOf(atCutpoint: Cutpoint): Command {
  const program = new Command('review-note')
    .description("append a reviewer's note to a journal, once: a kernel decides, an executor acts")
    .exitOverride()
    .configureOutput({ outputError: () => undefined })
  const command = (usage: string, summary: string): Command =>
    program
      .command(usage)
      .description(summary)
      .option('--state <dir>', 'where both owners keep their stores', DEFAULT_STATE)
      .option('--json', 'print one document')
  command('init', 'make both owners, once')
    .option('--invocations <n>', 'appends that the root grant permits', count, GRANTED_INVOCATIONS)
    .action((options: InitOptions) => init(options, atCutpoint))
  command('authorize <file>', 'reserve and start the append of a note')
    .requiredOption('--operation <key>', 'name of the operation')
    .action((file: string, options: AuthorizeOptions) => authorizeNote(file, options, atCutpoint))
  command('execute <key>', 'claim it and append the note, once')
    .option('--drop-reply', 'end before the signed report is delivered')
    .action((key: string, options: ExecuteOptions) => executeNote(key, options, atCutpoint))
  command('report <key>', 'let the kernel end the operation by the signed report').action(
    (key: string, options: CommonOptions) => reportNote(key, options, atCutpoint),
  )
  return program
}

function count(text: string): number {
  const isCount = /^[0-9]{1,2}$/.test(text) && Number(text) >= 1 && Number(text) <= MAXIMUM_INVOCATIONS
  if (!isCount) throw new InvalidArgumentError(`expected a whole number from 1 to ${MAXIMUM_INVOCATIONS}`)
  return Number(text)
}

interface InitOptions extends CommonOptions {
  readonly invocations: number
}
interface AuthorizeOptions extends CommonOptions {
  readonly operation: string
}
interface ExecuteOptions extends CommonOptions {
  readonly dropReply?: boolean
}

async function init(options: InitOptions, atCutpoint: Cutpoint): Promise<void> {
  const { executor, grant, kernelKey, state } = await initialise(
    options.state,
    options.invocations,
    atCutpoint,
  )
  const document = {
    executor_key: executor.public_key,
    grant_expires_at: grant.expires_at,
    invocations: options.invocations,
    kernel_key: kernelKey,
    schema: 'review-note.initialised.v1',
    state,
  }
  say(options, document, [`Initialised: ${state}`])
}

async function authorizeNote(file: string, options: AuthorizeOptions, atCutpoint: Cutpoint): Promise<void> {
  const { operation } = options
  const { authorization, operationId } = await authorize(actIn(options.state, atCutpoint), file, operation)
  const document = {
    dispatch_committed: true,
    expires_at_unix_ms: authorization.authorization.expires_at_unix_ms,
    key: operation,
    operation_id: operationId,
    schema: 'review-note.authorized.v1',
  }
  say(options, document, [`Authorized: ${operation}`])
}

async function executeNote(key: string, options: ExecuteOptions, atCutpoint: Cutpoint): Promise<void> {
  const isReplyDropped = options.dropReply === true
  const { claimId, operationId } = await execute(actIn(options.state, atCutpoint), key, isReplyDropped)
  if (isReplyDropped) {
    console.error(`review-note: reply of ${key} dropped on purpose; its note and its signed report are kept`)
    process.exitCode = REPLY_DROPPED
    return
  }
  const document = {
    claim_id: claimId,
    key,
    operation_id: operationId,
    schema: 'review-note.executed.v1',
  }
  say(options, document, [`Signed report retained: ${key}`, `Claim: ${claimId}`])
}

async function reportNote(key: string, options: CommonOptions, atCutpoint: Cutpoint): Promise<void> {
  const { note, operation_id, sha256 } = await report(actIn(options.state, atCutpoint), key)
  const document = { key, operation_id, schema: 'review-note.reported.v1', sha256, state: 'completed' }
  say(options, document, ['Completed: original report reconciled.', '', note.replace(/\n$/, '')])
}

function misuse({ code, message }: CommanderError): BrokerError {
  if (code === 'commander.help') {
    return new BrokerError('usage', 'review-note refused: expected one of its commands, got none')
  }
  return new BrokerError('usage', `review-note refused: ${message.replace(/^error: /, '')}`)
}
