// A launcher that is killed while its tool, with a child that forked twice and hears no signal, is at work: all of it
// must be gone. The launcher is a process of its own, run from the compiled code.
// Source: bwrap(1) --die-with-parent, pid_namespaces(7).
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { CageIdentity } from '../../cage/index.js'
import { systemClock } from '../../native/clock.js'
import {
  awaitReadable,
  closeDescriptor,
  hungUp,
  packageRoot,
  pidfdOpen,
  socketPair,
} from '../../native/index.js'
import { allowedEnvironment } from '../../system/environment.js'

const PATIENCE_NS = 10_000_000_000n

/** What the launcher says once its tool runs. */
export interface Doomed {
  readonly pid: number
  readonly wardenPid: number
}

/** @returns null when nothing is left, else what is. */
export async function outlivesLauncher(identity: CageIdentity | null): Promise<string | null> {
  const [peer, stream] = socketPair('stream')
  const program = join(packageRoot(), 'dist', 'selftest', 'escape', 'doomed-launcher.js')
  const child = spawn(process.execPath, [program, JSON.stringify(identity)], {
    cwd: '/',
    env: allowedEnvironment(),
    stdio: ['ignore', 'pipe', 'ignore', stream],
  })
  const exited = once(child, 'exit')
  closeDescriptor(stream)
  try {
    const line = await firstLine(child)
    const handles = handlesOf(JSON.parse(line) as Doomed)
    child.kill('SIGKILL')
    await exited
    return await leftOf(handles, peer)
  } finally {
    child.kill('SIGKILL')
    closeDescriptor(peer)
  }
}

/** @throws Error when it ended before its tool ran. */
async function firstLine(child: ChildProcess): Promise<string> {
  const lines = createInterface({ input: child.stdout as NodeJS.ReadableStream })
  const [line] = (await Promise.race([once(lines, 'line'), once(lines, 'close')])) as [string?]
  if (line !== undefined) return line
  throw new Error('launcher to be killed: expected its tool to run, got its end')
}

function handlesOf({ pid, wardenPid }: Doomed): { what: string; handle: number }[] {
  return [
    { what: 'the tool', handle: pidfdOpen(pid) },
    { what: 'the warden, and with it some of the cage', handle: pidfdOpen(wardenPid) },
  ]
}

/** Process 1 of a namespace is gone when every other process of it is. */
async function leftOf(handles: { what: string; handle: number }[], peer: number): Promise<string | null> {
  const left: string[] = []
  for (const { handle, what } of handles) {
    await awaitReadable(handle, systemClock.bootNs() + PATIENCE_NS).catch(() => left.push(what))
    closeDescriptor(handle)
  }
  if (!hungUp(peer)) left.push('a holder of the stream')
  return left.length === 0 ? null : left.join(', ')
}
