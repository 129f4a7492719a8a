// Owns: which sockets a service manager bound for this process and hands over from descriptor 3 on: whether they are
// exactly the ones of the configuration.
// Must never: serve on a descriptor that it did not check, or go on with fewer or more sockets than are configured.
// Source: sd_listen_fds(3), systemd.socket(5).
import { socketInfo } from '../native/index.js'
import { BrokerError } from '../protocol/errors.js'
import { errorCode } from './custody-refusal.js'
import type { ServiceEnvironment } from './service-environment.js'

/** SD_LISTEN_FDS_START. */
const FIRST_DESCRIPTOR = 3

/** Descriptor of each configured path; empty when the process binds its sockets itself. */
export type ActivatedSockets = ReadonlyMap<string, number>

/** @throws BrokerError `activation_refused`, one sentence that says what was handed over instead. */
export function activatedSockets(
  listen: ServiceEnvironment['listen'],
  paths: readonly string[],
  firstDescriptor = FIRST_DESCRIPTOR,
): ActivatedSockets {
  const sockets = new Map<string, number>()
  if (listen === null) return sockets
  assertForUs(listen.pid)
  assertCount(listen.fds, paths.length)
  for (let index = 0; index < paths.length; index += 1) {
    const descriptor = firstDescriptor + index
    const path = judge(descriptor, paths)
    if (sockets.has(path))
      throw refused(`descriptor ${descriptor}`, `another socket than ${path}`, 'it twice')
    sockets.set(path, descriptor)
  }
  return sockets
}

function assertForUs(pid: string | undefined): void {
  if (pid === `${process.pid}`) return
  throw refused('LISTEN_PID', `${process.pid}, the pid of this process`, numberText(pid))
}

function assertCount(fds: string | undefined, expected: number): void {
  if (fds === `${expected}`) return
  throw refused('LISTEN_FDS', `${expected}, one for each socket of the configuration`, numberText(fds))
}

/** @returns the configured path at which this descriptor listens. */
function judge(descriptor: number, paths: readonly string[]): string {
  const what = `descriptor ${descriptor}`
  const { domain, type, listening, path } = infoOf(descriptor, what)
  if (domain !== 'unix') throw refused(what, 'a Unix socket', `one of ${domain}`)
  if (type !== 'stream') throw refused(what, 'a stream socket, ListenStream=', type)
  if (!listening) throw refused(what, 'a listening socket, Accept=no', 'one that does not listen')
  if (path !== null && paths.includes(path)) return path
  throw refused(
    what,
    `a socket at ${paths.join(' or ')}`,
    path === null ? 'one without a name' : pathText(path),
  )
}

function infoOf(descriptor: number, what: string): ReturnType<typeof socketInfo> {
  try {
    return socketInfo(descriptor)
  } catch (error) {
    throw refused(what, 'a socket', errorCode(error), error)
  }
}

function numberText(value: string | undefined): string {
  if (value === undefined) return 'none'
  return /^[0-9]{1,10}$/.test(value) ? value : 'another text'
}

function pathText(path: string): string {
  return path.startsWith('/') ? `one at ${JSON.stringify(path)}` : 'one with an abstract name'
}

function refused(what: string, expected: string, got: string, cause?: unknown): BrokerError {
  return new BrokerError(
    'activation_refused',
    `activation refused: expected ${what} to be ${expected}, got ${got}; see the .socket unit`,
    { outcome: 'not_started', cause },
  )
}
