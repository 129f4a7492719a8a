/**
 * The refusal of a launch: which layer, which call failed, what it answered. Never a fallback: whoever catches one
 * has no cage, and the stream that was handed over is closed.
 * Only bwrap's own words before the tool ran are quoted, bounded and escaped; never a byte of the tool.
 */
import { constants } from 'node:os'
import { BrokerError } from '../protocol/errors.js'

export class CageRefusal extends BrokerError {
  /** The failing call, as `seccomp` or `recvmsg handoff`; or the check that did not hold. */
  readonly failingCall: string
  /** Its errno name, null when a check and not a call refused. */
  readonly errnoName: string | null

  constructor(layer: { call: string; errno: string | null }, sentence: string, cause?: unknown) {
    super('cage_refused', sentence, { outcome: 'not_started', cause })
    this.failingCall = layer.call
    this.errnoName = layer.errno
  }
}

/** The first of two names for one number: EAGAIN, not EWOULDBLOCK. */
const ERRNO_NAMES = new Map(
  Object.entries(constants.errno)
    .reverse()
    .map(([name, number]) => [number, name]),
)

export function errnoName(number: number): string {
  return ERRNO_NAMES.get(number) ?? `errno ${number}`
}

/** What a person can do nothing with as a call and its errno. */
const KNOWN_FAILURES: Readonly<Record<string, string>> = {
  'poll stream ENOTCONN':
    'prepared stream: expected the broker at its other end, got an end that it had closed; nothing was sent: run it again, and look at chio status',
  'slot 255 EMFILE':
    'open files: expected a hard limit of at least 256 for a tool that executes once, got a lower one; raise it: ulimit -Hn 1024',
}

/** What the doctor cannot see from where it is run. */
const NEXT_AFTER: Readonly<Record<string, string>> = {
  EMFILE: 'raise the limit of open files: ulimit -n 1024',
  EAGAIN: 'raise the limit of processes: ulimit -u',
}

/** A call failed, in cage-init or here. */
export function refusedCall(call: string, errno: string, cause?: unknown): CageRefusal {
  const next = NEXT_AFTER[errno] ?? 'run chio doctor'
  const sentence = KNOWN_FAILURES[`${call} ${errno}`] ?? `${call} failed with ${errno}; ${next}`
  return new CageRefusal({ call, errno }, `cage refused: ${sentence}`, cause)
}

/** A check did not hold: `expected X, got Y`. */
export function refusedCheck(check: string, expected: string, got: string): CageRefusal {
  const sentence = `cage refused: ${check}: expected ${expected}, got ${got}; run chio doctor`
  return new CageRefusal({ call: check, errno: null }, sentence)
}

/** The tool is no program for this machine: seen by the kernel alone, at the exec. Any other refusal stays as it is. */
export function refusedExec(error: unknown, path: string): CageRefusal {
  const refusal = refusedBy(error, 'exec')
  if (refusal.errnoName !== 'ENOEXEC') return refusal
  const got = `${refusal.failingCall} failed with ENOEXEC`
  const sentence = `cage refused: tool ${path}: expected a program of this machine, got ${got}; check its first line and its architecture`
  return new CageRefusal({ call: refusal.failingCall, errno: 'ENOEXEC' }, sentence, refusal)
}

/** What of a tool cannot be started, and what to do about it. Judged before anything is reserved or launched. */
export interface ToolFault {
  readonly expected: string
  readonly got: string
  readonly next: string
}

export function refusedTool(path: string, { expected, got, next }: ToolFault): BrokerError {
  const sentence = `tool ${path} refused: expected ${expected}, got ${got}; ${next}`
  return new BrokerError('tool_refused', sentence, { outcome: 'not_started' })
}

/** What a native or file-system error of ours becomes. */
export function refusedBy(error: unknown, call: string): CageRefusal {
  if (error instanceof CageRefusal) return error
  const { code, syscall } = error as NodeJS.ErrnoException
  return refusedCall(syscall === undefined ? call : `${syscall} (${call})`, code ?? 'an unknown error', error)
}
