// Owns: what every process of ours does before it reads a key or a configuration.
// Must never: go on after a step that failed.
// Source: prctl(2) PR_SET_DUMPABLE, close_range(2) CLOSE_RANGE_CLOEXEC; closing inherited descriptors would abort Node.
import { url as openDebugger } from 'node:inspector'
import { forbidDebugger, forbidDumps, markCloseOnExecFrom } from '../native/index.js'
import { assertDebuggerClosed, assertEnvironment, assertExecArgv } from './environment.js'

const FIRST_INHERITED_DESCRIPTOR = 3
const PRIVATE_UMASK = 0o077

export interface HygieneOptions {
  /** Descriptors that a child is meant to inherit. */
  readonly keepDescriptors?: readonly number[]
  readonly environment?: NodeJS.ProcessEnv
  readonly execArgv?: readonly string[]
}

/** First call of a daemon. @throws BrokerError `hostile_environment`, naming the variable or option, or an open debugger. */
export function startupHygiene(options: HygieneOptions = {}): void {
  forbidDumps()
  forbidDebugger()
  markCloseOnExecFrom(FIRST_INHERITED_DESCRIPTOR, [...(options.keepDescriptors ?? [])])
  process.umask(PRIVATE_UMASK)
  assertEnvironment(options.environment ?? process.env)
  assertExecArgv(options.execArgv ?? process.execArgv)
  assertDebuggerClosed(openDebugger())
}
