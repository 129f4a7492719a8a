/**
 * Runs a seccomp program on one call, as the kernel would: the filter of a foreign architecture can be tried too.
 * Knows only the instructions that a seccomp filter may hold and that ours uses; any other is a fault of the test.
 */
import type { Instruction } from '../../cage/bpf.js'

export interface Call {
  readonly number: number
  readonly audit: number
  readonly args?: readonly bigint[]
}

/** struct seccomp_data: nr, arch, instruction pointer, six arguments; little-endian. */
function seccompData(call: Call): DataView {
  const view = new DataView(new ArrayBuffer(64))
  view.setUint32(0, call.number, true)
  view.setUint32(4, call.audit, true)
  call.args?.forEach((value, index) => view.setBigUint64(16 + 8 * index, BigInt.asUintN(64, value), true))
  return view
}

const VERDICTS = new Map([
  [0x7fff_0000, 'allow'],
  [0x0005_0001, 'eperm'],
  [0x0005_0026, 'enosys'],
  [0x8000_0000, 'kill'],
  [0x7fc0_0000, 'notify'],
])

function jumps(instruction: Instruction, accumulator: number): boolean {
  const { code, k } = instruction
  if (code === 0x15) return accumulator === k
  if (code === 0x25) return accumulator > k
  if (code === 0x35) return accumulator >= k
  throw new Error(`instruction expected a known code, got ${code}`)
}

export function runFilter(program: readonly Instruction[], call: Call): string {
  const data = seccompData(call)
  let accumulator = 0
  for (let at = 0; ; at++) {
    const instruction = program[at]
    if (instruction === undefined) throw new Error('program expected a return, ran past its end')
    if (instruction.code === 0x06) return VERDICTS.get(instruction.k) ?? String(instruction.k)
    if (instruction.code === 0x20) accumulator = data.getUint32(instruction.k, true)
    else if (instruction.code === 0x54) accumulator = (accumulator & instruction.k) >>> 0
    else if (instruction.code === 0x05) at += instruction.k
    else at += jumps(instruction, accumulator) ? instruction.jumpTrue : instruction.jumpFalse
  }
}
