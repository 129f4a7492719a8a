/**
 * A small compiler from rules to a classic BPF program for seccomp. Pure: rules in, instructions out.
 * Never decides what is allowed. Arguments are compared on their low 32 bits only: the kernel takes them as int,
 * so a comparison of all 64 bits is passed by value + 2^32. Dispatch is a search tree over the call numbers.
 * Source: seccomp(2), Documentation/userspace-api/seccomp_filter.rst, linux/bpf_common.h.
 */

export interface Instruction {
  readonly code: number
  readonly jumpTrue: number
  readonly jumpFalse: number
  readonly k: number
}

export type Verdict = 'allow' | 'eperm' | 'enosys' | 'kill' | 'notify'

/** Holds when (low 32 bits of the argument & mask) is one of the values. */
export interface ArgumentTest {
  readonly argument: 0 | 1 | 2 | 3 | 4 | 5
  readonly mask: number
  readonly anyOf: readonly number[]
}

/** `matched` when every test holds, `otherwise` when one does not. */
export interface Decision {
  readonly tests: readonly ArgumentTest[]
  readonly matched: Verdict
  readonly otherwise: Verdict
}

export interface FilterSource {
  /** AUDIT_ARCH_… of the one ABI; every other is killed. */
  readonly auditArchitecture: number
  /** x32 shares its audit architecture with x86_64 and is told apart by this bit; killed. */
  readonly foreignAbiBit: number | null
  /** Calls that came after this number are unknown to us: ENOSYS, as on an older kernel. */
  readonly highestKnownCall: number
  readonly decisions: ReadonlyMap<number, Decision>
  readonly unlisted: Verdict
}

const LOAD_WORD = 0x20
const AND = 0x54
const JUMP = 0x05
const JUMP_EQUAL = 0x15
const JUMP_GREATER = 0x25
const JUMP_AT_LEAST = 0x35
const RETURN = 0x06

const CALL_NUMBER_AT = 0
const ARCHITECTURE_AT = 4
const ARGUMENTS_AT = 16

/** EPERM and ENOSYS are 1 and 38 on both architectures. */
const VERDICTS: Record<Verdict, number> = {
  allow: 0x7fff_0000,
  eperm: 0x0005_0000 | 1,
  enosys: 0x0005_0000 | 38,
  kill: 0x8000_0000,
  notify: 0x7fc0_0000,
}

const op = (code: number, k: number, jumpTrue = 0, jumpFalse = 0): Instruction => ({
  code,
  jumpTrue,
  jumpFalse,
  k: k >>> 0,
})

const answer = (verdict: Verdict): Instruction => op(RETURN, VERDICTS[verdict])

/** Little-endian: the low word of an argument is its first. */
function testArgument(test: ArgumentTest, otherwise: Verdict): Instruction[] {
  const load = [op(LOAD_WORD, ARGUMENTS_AT + 8 * test.argument)]
  if (test.mask >>> 0 !== 0xffff_ffff) load.push(op(AND, test.mask))
  const last = test.anyOf.length - 1
  const compare = test.anyOf.map((value, index) => op(JUMP_EQUAL, value, last - index + 1, 0))
  return [...load, ...compare, answer(otherwise)]
}

function decide(decision: Decision): Instruction[] {
  const tests = decision.tests.flatMap(test => testArgument(test, decision.otherwise))
  return [...tests, answer(decision.matched)]
}

type Listed = readonly [call: number, decision: Decision]

function leaf([call, decision]: Listed, unlisted: Verdict): Instruction[] {
  const body = decide(decision)
  return [op(JUMP_EQUAL, call, 0, body.length), ...body, answer(unlisted)]
}

/** The call number is in the accumulator. A conditional jump reaches 255 instructions, the plain one any. */
function searchTree(listed: readonly Listed[], unlisted: Verdict): Instruction[] {
  const [first] = listed
  if (first === undefined) return [answer(unlisted)]
  if (listed.length === 1) return leaf(first, unlisted)
  const middle = listed.length >> 1
  const lower = searchTree(listed.slice(0, middle), unlisted)
  const upper = searchTree(listed.slice(middle), unlisted)
  const [split] = listed[middle]!
  return [op(JUMP_AT_LEAST, split, 0, 1), op(JUMP, lower.length), ...lower, ...upper]
}

export function compileFilter(source: FilterSource): Instruction[] {
  const listed = [...source.decisions].sort(([a], [b]) => a - b)
  const foreignAbi =
    source.foreignAbiBit === null ? [] : [op(JUMP_AT_LEAST, source.foreignAbiBit, 0, 1), answer('kill')]
  return [
    op(LOAD_WORD, ARCHITECTURE_AT),
    op(JUMP_EQUAL, source.auditArchitecture, 1, 0),
    answer('kill'),
    op(LOAD_WORD, CALL_NUMBER_AT),
    ...foreignAbi,
    op(JUMP_GREATER, source.highestKnownCall, 0, 1),
    answer(source.unlisted === 'kill' ? 'kill' : 'enosys'),
    ...searchTree(listed, source.unlisted),
  ]
}

const encoded = new WeakMap<readonly Instruction[], Uint8Array>()

function encode(program: readonly Instruction[]): Uint8Array {
  const bytes = new Uint8Array(program.length * 8)
  const view = new DataView(bytes.buffer)
  program.forEach((instruction, index) => {
    view.setUint16(index * 8, instruction.code, true)
    view.setUint8(index * 8 + 2, instruction.jumpTrue)
    view.setUint8(index * 8 + 3, instruction.jumpFalse)
    view.setUint32(index * 8 + 4, instruction.k, true)
  })
  return bytes
}

/** struct sock_filter: u16 code, u8 jt, u8 jf, u32 k, little-endian. Kept as long as the program is. */
export function filterBytes(program: readonly Instruction[]): Uint8Array {
  const bytes = encoded.get(program) ?? encode(program)
  encoded.set(program, bytes)
  return bytes
}
