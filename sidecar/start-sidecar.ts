// Owns a serving sidecar: what it needs before it listens, its one socket, and its end.
// Must never: begin to listen half: what is missing is named whole. Nothing that a client sends stops the process.
// Source: caller delivery over HTTP; "sidecar routes are mounted by whoever holds the kernel".
import type { RequestListener, Server } from 'node:http'
import { limitedLog } from '../kernel/serving/limited-log.js'
import type { KernelLog } from '../kernel/kernel-context.js'
import type { Clock } from '../protocol/clock.js'
import { assertFoundations, type CallerKernel } from './caller-kernel.js'
import type { ControlToken } from './control-token.js'
import { CLOSE_WITHIN_MS } from './http-limits.js'
import { boundedServer } from './http-server.js'
import { routedApplication } from './routed-application.js'
import { faultOf } from './sidecar-faults.js'
import {
  assertListen,
  authorityOf,
  bindListener,
  type BoundSidecar,
  type SidecarListen,
} from './sidecar-listener.js'

export interface SidecarOptions {
  readonly kernel: CallerKernel
  readonly listen: SidecarListen
  /** Null: the control routes refuse everybody. */
  readonly controlToken: ControlToken | null
  readonly clock: Clock
  readonly log: KernelLog
}

export interface RunningSidecar {
  /** Where it listens; the port that was bound where 0 was asked for. */
  readonly listen: SidecarListen
  /** Accepts nothing new, answers what is asked, gives the socket back. Safe to repeat. */
  close(): Promise<void>
  /** Ends every connection now; who is being asked for hears no answer. Safe to repeat. */
  hurry(): void
}

/**
 * Serves the caller routes until it is closed.
 * @throws BrokerError `invalid_configuration` naming everything that is missing; `custody` or `another_instance` of the
 * socket. Nothing listens then.
 */
export async function startSidecar(options: SidecarOptions): Promise<RunningSidecar> {
  const { clock, controlToken, kernel, listen } = options
  assertFoundations(kernel)
  assertListen(listen)
  const log = limitedLog(options.log, clock)
  // What is bound says which Host is expected; before that nobody can ask.
  const gate = { authority: null as string | null, token: controlToken }
  let server: Server | undefined
  const app = routedApplication({ gate, kernel, log }, handler => (server = serverOf(handler, clock, log)))
  await app.ready()
  const bound = await bindListener(server as Server, listen)
  gate.authority = authorityOf(bound.listen)
  log({ level: 'info', event: 'sidecar_ready', control: controlToken !== null, ...bound.listen })
  let closed: Promise<void> | undefined
  return {
    listen: bound.listen,
    close: () => (closed ??= endOf(server as Server, bound).then(() => app.close())),
    hurry: () => server?.closeAllConnections(),
  }
}

function serverOf(handler: RequestListener, clock: Clock, log: KernelLog): Server {
  return boundedServer(handler, clock, {
    onFault: error => log({ level: 'error', event: 'sidecar_fault', ...faultOf(error) }),
    onMalformed: reason => log({ level: 'warn', event: 'sidecar_malformed', reason }),
    onTurnedAway: reason => log({ level: 'warn', event: 'sidecar_connection_refused', reason }),
  })
}

/** Idle connections end at once, others with their answer, all of them in the end. */
async function endOf(server: Server, bound: BoundSidecar): Promise<void> {
  const closed = new Promise<void>(resolve => {
    server.close(() => resolve())
  })
  bound.release()
  server.closeIdleConnections()
  const patience = setTimeout(() => server.closeAllConnections(), CLOSE_WITHIN_MS)
  await closed
  clearTimeout(patience)
}
