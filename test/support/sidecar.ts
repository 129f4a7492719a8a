// Owns sidecars as tests make them: over a kernel that answers with the own documents and counts what it is asked, and
// the raw requests of clients that are no clients. Must never be reached from anything that ships.
import { mkdirSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import type { KernelEvent } from '../../kernel/kernel-context.js'
import { systemClock } from '../../native/clock.js'
import type {
  EvaluateReply,
  ReportBody,
  ReportReply,
  StartBody,
  StartReply,
} from '../../protocol/caller-http.js'
import { encode } from '../../protocol/codec.js'
import type { CallerKernel } from '../../sidecar/caller-kernel.js'
import { ControlToken } from '../../sidecar/control-token.js'
import type { SidecarListen } from '../../sidecar/sidecar-listener.js'
import { type RunningSidecar, startSidecar } from '../../sidecar/start-sidecar.js'
import { callerDocuments } from './own-caller.js'
import { call } from './own-tokens.js'
import { temporaryFolder } from './temporary-folder.js'

export const CONTROL_TOKEN = 'the-control-token-of-tests.0123456789~AZ+/=='

/** As it travels: byte strings are lists there. */
function valueOf(name: string): unknown {
  const document = callerDocuments(call).find(each => each.name === name)
  if (document === undefined) throw new RangeError(`"name" expected one of the own documents, got ${name}`)
  return JSON.parse(Buffer.from(encode(document.codec, document.value)).toString())
}

/** Replies and bodies by the names of the own documents. */
export const OWN = {
  reserved: valueOf('evaluate-reserved') as EvaluateReply,
  evaluateDenied: valueOf('evaluate-denied') as EvaluateReply,
  started: valueOf('start-committed') as StartReply,
  startDenied: valueOf('start-denied') as StartReply,
  reconciled: valueOf('report-reconciled') as ReportReply,
  reportDenied: valueOf('report-denied') as ReportReply,
  evaluateBody: valueOf('evaluate-body') as { readonly [member: string]: unknown },
  startBody: valueOf('start-body') as StartBody,
  reportBody: valueOf('report-body') as ReportBody,
}

export interface ScriptedKernel extends CallerKernel {
  /** What it was asked, in order. */
  readonly asked: string[]
  answer: Partial<Pick<CallerKernel, 'evaluate' | 'start' | 'report'>>
}

/** A kernel that answers as it is told, for what HTTP does by itself. */
export function scriptedKernel(): ScriptedKernel {
  const asked: string[] = []
  const kernel: ScriptedKernel = {
    answer: {},
    asked,
    foundations: { budgetAuthority: true, durableAdmission: true, pinnedExecutor: true },
    evaluate(agent, request) {
      asked.push('evaluate')
      return kernel.answer.evaluate?.(agent, request) ?? Promise.resolve(OWN.reserved)
    },
    start(body) {
      asked.push('start')
      return kernel.answer.start?.(body) ?? Promise.resolve(OWN.started)
    },
    report(body) {
      asked.push('report')
      return kernel.answer.report?.(body) ?? Promise.resolve(OWN.reconciled)
    },
  }
  return kernel
}

export interface TestSidecar {
  readonly running: RunningSidecar
  readonly events: KernelEvent[]
  readonly listen: SidecarListen
}

/** A sidecar at a socket of its own, or at a free loopback port. */
export async function testSidecar(
  kernel: CallerKernel,
  options: { readonly token?: string | null; readonly host?: '127.0.0.1' | '::1' } = {},
): Promise<TestSidecar> {
  const events: KernelEvent[] = []
  const { host, token = CONTROL_TOKEN } = options
  const running = await startSidecar({
    clock: systemClock,
    controlToken: token === null ? null : new ControlToken(token),
    kernel,
    listen: host === undefined ? { path: socketPath() } : { host, port: 0 },
    log: event => events.push(event),
  })
  return { events, listen: running.listen, running }
}

export function socketPath(): string {
  const directory = join(temporaryFolder('chio-sidecar-'), 'run')
  mkdirSync(directory, { mode: 0o700 })
  return join(directory, 'sock')
}

export function connectTo(listen: SidecarListen): Socket {
  return 'path' in listen ? connect(listen.path) : connect(listen.port, listen.host)
}

/** The authority that a client of this sidecar names. */
export function hostOf(listen: SidecarListen): string {
  if ('path' in listen) return 'sidecar'
  return `${listen.host === '::1' ? '[::1]' : listen.host}:${listen.port}`
}

/** A request as text: exactly these fields, one character a byte. */
export function rawRequest(
  path: string,
  fields: readonly (readonly [string, string])[],
  body: string | Uint8Array = '',
  method = 'POST',
): Buffer {
  const head = [`${method} ${path} HTTP/1.1`, ...fields.map(([name, value]) => `${name}: ${value}`)]
  return Buffer.concat([Buffer.from(`${head.join('\r\n')}\r\n\r\n`, 'latin1'), Buffer.from(body)])
}

/** The fields that a request of ours has; what differs is given, and null leaves one out. */
export function fieldsOf(
  listen: SidecarListen,
  bytes: number,
  changes: { readonly [name: string]: string | null } = {},
): [string, string][] {
  const fields = {
    host: hostOf(listen),
    authorization: `Bearer ${CONTROL_TOKEN}`,
    'content-type': 'application/json',
    'content-length': String(bytes),
    ...changes,
  }
  return Object.entries(fields).filter((field): field is [string, string] => field[1] !== null)
}

export interface RawReply {
  readonly status: number
  readonly head: string
  readonly body: string
}

/** Sends bytes on a connection of its own and reads one whole answer; the connection is left to `then`. */
export async function askRaw(
  listen: SidecarListen,
  bytes: Uint8Array,
  then: (socket: Socket) => void = socket => socket.destroy(),
): Promise<RawReply> {
  const socket = connectTo(listen)
  try {
    socket.write(bytes)
    return await readReply(socket)
  } finally {
    then(socket)
  }
}

/** @throws Error when the connection ends before a whole answer. */
export function readReply(socket: Socket): Promise<RawReply> {
  return new Promise((resolve, reject) => {
    let text = ''
    socket.on('data', chunk => {
      text += chunk.toString('latin1')
      const reply = replyIn(text)
      if (reply !== undefined) resolve(reply)
    })
    socket.on('error', reject)
    socket.on('close', () => reject(new Error(`closed after ${text.length} bytes of an answer`)))
  })
}

function replyIn(text: string): RawReply | undefined {
  const at = text.indexOf('\r\n\r\n')
  if (at < 0) return undefined
  const head = text.slice(0, at)
  const body = text.slice(at + 4)
  const length = Number(/content-length: (\d+)/i.exec(head)?.[1] ?? '0')
  if (body.length < length) return undefined
  return { status: Number(head.split(' ')[1]), head, body: body.slice(0, length) }
}
