// Owns: which environment a process of ours may run in, and the one it hands to a daemon.
// Must never: pass a variable on because it happened to be there, or print a value.
// Source: node(1) "Environment variables", ld.so(8) "Secure-execution mode", openssl-env(7).
import { BrokerError } from '../protocol/errors.js'

/** What changes the code, the trust anchors or the peers of a Node process from outside. */
const HOSTILE_PATTERNS: readonly RegExp[] = [
  // Every switch of Node but these: new ones come with every release (NODE_COMPILE_CACHE runs what it finds).
  /^NODE_(?!(?:ENV|NO_WARNINGS|PENDING_DEPRECATION|DISABLE_COLORS)$)/,
  /^LD_/,
  /^OPENSSL_/,
  /^SSL_CERT_/,
  /^SSLKEYLOGFILE$/,
  /_PROXY$/i,
]

/** What the C library itself drops for a program with other rights than its caller: code, names and peers. */
const HOSTILE_NAMES: ReadonlySet<string> = new Set([
  'GCONV_PATH',
  'GETCONF_DIR',
  'GLIBC_TUNABLES',
  'HOSTALIASES',
  'LOCALDOMAIN',
  'LOCPATH',
  'MALLOC_TRACE',
  'NIS_PATH',
  'NLSPATH',
  'RESOLV_HOST_CONF',
  'RES_OPTIONS',
  'TZDIR',
])

/** Node options that change nothing of what is trusted. */
const ALLOWED_EXEC_ARGV: readonly RegExp[] = [
  /^--enable-source-maps$/,
  /^--no-warnings$/,
  /^--no-deprecation$/,
  /^--max-old-space-size=\d+$/,
  /^--max-semi-space-size=\d+$/,
]

/** What a daemon needs of its parent's environment and what cannot lead it astray. */
const INHERITED_NAMES = ['HOME', 'LANG', 'LC_ALL', 'TZ'] as const
const DAEMON_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

export function isHostileVariable(name: string): boolean {
  return HOSTILE_NAMES.has(name) || HOSTILE_PATTERNS.some(pattern => pattern.test(name))
}

/** Names of hostile variables, for `doctor`, which only warns. An empty value counts: it may still mean something. */
export function hostileVariables(environment: NodeJS.ProcessEnv): string[] {
  return Object.keys(environment).filter(isHostileVariable).sort()
}

export function assertEnvironment(environment: NodeJS.ProcessEnv): void {
  const [name] = hostileVariables(environment)
  if (name === undefined) return
  throw hostile(`expected an environment without ${name}, got one with it; unset ${name}`)
}

export function assertExecArgv(execArgv: readonly string[]): void {
  const foreign = execArgv.find(argument => !ALLOWED_EXEC_ARGV.some(pattern => pattern.test(argument)))
  if (foreign === undefined) return
  throw hostile(`expected no foreign Node option, got ${optionName(foreign)}; start without it`)
}

/**
 * Every user of the machine may connect to an open debugger, and then runs code in this process.
 * @param url of the debugger that is open, from `node:inspector`.
 */
export function assertDebuggerClosed(url: string | undefined): void {
  if (url === undefined) return
  throw hostile(
    'expected no open debugger, got one; start without NODE_OPTIONS and without a debugging editor',
  )
}

/**
 * The whole environment for a daemon that we start: a fixed PATH, the locale, and what the caller names.
 * @throws BrokerError `hostile_environment` when the caller names a hostile variable.
 */
export function allowedEnvironment(extra: Readonly<Record<string, string>> = {}): Record<string, string> {
  assertEnvironment(extra)
  const environment: Record<string, string> = { PATH: DAEMON_PATH }
  for (const name of INHERITED_NAMES) {
    const value = process.env[name]
    if (value !== undefined) environment[name] = value
  }
  return { ...environment, ...extra }
}

/** Without its value, which may be a path or a program text. */
function optionName(argument: string): string {
  return /^--?[A-Za-z0-9.-]{1,64}/.exec(argument)?.[0] ?? 'one without a name'
}

function hostile(sentence: string): BrokerError {
  return new BrokerError('hostile_environment', `start refused: ${sentence}`, { outcome: 'not_started' })
}
