// Owns what a traced process and its children asked the kernel for, read from strace's own lines: whole calls in
// order, each with the process (not the thread) that made it.
import { readFileSync } from 'node:fs'

export interface TracedCall {
  /** Process of the caller, by the first thread of it that was seen. */
  readonly process: number
  readonly name: string
  readonly text: string
}

/** strace with room for the operation's name, which follows an authorization of some thousand bytes. */
export function straceCommand(output: string): string[] {
  const calls = 'clone,clone3,fork,vfork,connect,fcntl,write,writev,sendto,sendmsg,sendmmsg'
  return ['strace', '-f', '-qq', '-s', '8192', '-e', `trace=${calls}`, '-e', 'signal=none', '-o', output]
}

const LINE = /^(\d+) +(.*)$/
const UNFINISHED = / <unfinished \.\.\.>$/
const RESUMED = /^<\.\.\. \w+ resumed>/

/** Reads a trace. The first caller is the traced program's own first thread. */
export function readTrace(path: string): TracedCall[] {
  const calls = wholeCalls(readFileSync(path, 'latin1').split('\n'))
  const maker = new Map<number, number>()
  for (const { thread, text } of calls) {
    const made = Number(/ = (\d+)/.exec(text)?.[1] ?? 0)
    // A new thread belongs to its maker's process; anything else that is made is a process of its own.
    if (/^(clone|v?fork)/.test(text) && text.includes('CLONE_THREAD') && made > 0) maker.set(made, thread)
  }
  const processOf = (thread: number): number => {
    const parent = maker.get(thread)
    return parent === undefined ? thread : processOf(parent)
  }
  return calls.map(({ thread, text }) => ({
    process: processOf(thread),
    name: /^\w+/.exec(text)?.[0] ?? '',
    text,
  }))
}

/** Joins the halves of calls that others interrupted. */
function wholeCalls(lines: readonly string[]): { thread: number; text: string }[] {
  const pending = new Map<number, string>()
  const calls: { thread: number; text: string }[] = []
  for (const line of lines) {
    const [, tid, said] = LINE.exec(line) ?? []
    if (tid === undefined || said === undefined) continue
    const thread = Number(tid)
    if (UNFINISHED.test(said)) {
      pending.set(thread, said.replace(UNFINISHED, ''))
      continue
    }
    const text = RESUMED.test(said) ? (pending.get(thread) ?? '') + said.replace(RESUMED, '') : said
    calls.push({ thread, text })
  }
  return calls
}
