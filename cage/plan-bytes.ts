/**
 * The bytes of cage-init's plan. Pure. native/cage-init/plan.c reads the same order; both are little-endian, each
 * string is its length with the NUL counted, padded to four bytes. Never holds a secret: the request comes apart.
 */
import { filterBytes, type Instruction } from './bpf.js'
import type { ExecPolicy } from './seccomp.js'

export interface ResourceLimit {
  /** RLIMIT_… number */
  readonly resource: number
  readonly value: number
}

export interface InitPlan {
  readonly exec: ExecPolicy
  /** Largest request frame, its four length bytes counted. */
  readonly requestMaximumBytes: number
  readonly directory: string
  readonly executable: string
  readonly argv: readonly string[]
  readonly environment: readonly string[]
  readonly limits: readonly ResourceLimit[]
  readonly wardenFilter: readonly Instruction[]
  readonly toolFilter: readonly Instruction[]
}

const MAGIC = 'CHIOCAG1'

/** INSTRUCTIONS_MAXIMUM of cage-init, and the kernel's BPF_MAXINSNS. */
const INSTRUCTIONS_MAXIMUM = 4096

function u32(value: number): Uint8Array {
  const bytes = new Uint8Array(4)
  new DataView(bytes.buffer).setUint32(0, value, true)
  return bytes
}

function u64(value: number): Uint8Array {
  const bytes = new Uint8Array(8)
  new DataView(bytes.buffer).setBigUint64(0, BigInt(value), true)
  return bytes
}

function text(value: string): Uint8Array {
  const encoded = Buffer.from(value, 'utf8')
  const length = encoded.length + 1
  const bytes = new Uint8Array(4 + ((length + 3) & ~3))
  bytes.set(u32(length))
  bytes.set(encoded, 4)
  return bytes
}

function texts(values: readonly string[]): Uint8Array[] {
  return [u32(values.length), ...values.map(text)]
}

function filter(program: readonly Instruction[]): Uint8Array[] {
  if (program.length < 1 || program.length > INSTRUCTIONS_MAXIMUM) {
    throw new RangeError(`"filter" expected 1 to ${INSTRUCTIONS_MAXIMUM} instructions, got ${program.length}`)
  }
  return [u32(program.length), filterBytes(program)]
}

export function encodeInitPlan(plan: InitPlan): Uint8Array {
  return Buffer.concat([
    Buffer.from(MAGIC, 'latin1'),
    u32(plan.exec === 'once' ? 1 : 2),
    u64(plan.requestMaximumBytes),
    text(plan.directory),
    text(plan.executable),
    ...texts(plan.argv),
    ...texts(plan.environment),
    u32(plan.limits.length),
    ...plan.limits.flatMap(limit => [u32(limit.resource), u64(limit.value)]),
    ...filter(plan.wardenFilter),
    ...filter(plan.toolFilter),
  ])
}
