/**
 * What a test needs to see of descriptors: how many are open, their flags, a deadline, a second process that
 * inherits some of them. Never closes what it did not open.
 */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  copyFileSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { addonPath } from '../../native/paths.js'
import { bootTimeNs } from '../../native/clock.js'

/** Descriptors of this process, the one that reads the list included each time. */
export function openDescriptorCount(): number {
  return readdirSync('/proc/self/fd').length
}

/** Open flags in octal as /proc prints them: O_CLOEXEC is 0o2000000, O_NONBLOCK 0o4000. */
export function descriptorFlags(fd: number): number {
  const match = /^flags:\s*([0-7]+)$/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, 'utf8'))
  return Number.parseInt(match?.[1] ?? '', 8)
}

export const CLOEXEC = 0o2000000
export const NONBLOCK = 0o4000

export function descriptorTarget(fd: number): string {
  return readlinkSync(`/proc/self/fd/${fd}`)
}

export function deadlineIn(milliseconds: number): bigint {
  return bootTimeNs() + BigInt(milliseconds) * 1_000_000n
}

/** The code of what a call throws or rejects with; undefined when it does not. */
export async function codeOf(action: () => unknown): Promise<string | undefined> {
  try {
    await action()
    return undefined
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? (error as Error).name
  }
}

export interface Ended {
  readonly status: number | null
  readonly signal: string | null
  readonly stdout: string
  readonly stderr: string
}

/** A machine under load gets its time; what hangs ends all the same. */
const RUN_TIMEOUT_MS = 100_000

/** Runs a program to its end with the given descriptors at 3, 4, … of it. */
export function runWith(program: string, args: readonly string[], inherited: readonly number[] = []): Ended {
  const child = spawnSync(program, args, {
    stdio: ['ignore', 'pipe', 'pipe', ...inherited],
    timeout: RUN_TIMEOUT_MS,
    maxBuffer: 64 * 1024 * 1024,
  })
  return {
    status: child.status,
    signal: child.signal,
    stdout: child.stdout.toString(),
    stderr: child.stderr.toString(),
  }
}

/** Python sees an inherited socket at 3 as `s` and the modules that it needs. */
export function runPython(body: string, inherited: readonly number[] = []): Ended {
  return runWith('/usr/bin/python3', ['-c', `${PYTHON_HEAD}\n${body}`], inherited)
}

const PYTHON_HEAD = [
  'import os, sys, socket, struct, array, resource, time, fcntl',
  'S, R = socket.SOL_SOCKET, socket.SCM_RIGHTS',
  's = socket.socket(fileno=3) if os.path.exists("/proc/self/fd/3") else None',
].join('\n')

/** Node with the raw addon as `addon`, in a process of its own. */
export function runNode(body: string, inherited: readonly number[] = []): Ended {
  return runWith(process.execPath, ['-e', nodeScript(body)], inherited)
}

export function nodeScript(body: string, addonFile = addonPath()): string {
  return `const addon = require(${JSON.stringify(addonFile)});\n${body}`
}

/** The same, as an unprivileged user: root drops to a free uid and gets a copy of the addon that it can reach. */
export function runNodeUnprivileged(body: string): Ended {
  if (process.getuid!() !== 0) return runNode(body)
  const folder = mkdtempSync(join(tmpdir(), 'chio-reach-'))
  try {
    chmodSync(folder, 0o755)
    const copy = join(folder, 'chio_native.node')
    copyFileSync(addonPath(), copy)
    const user = ['--reuid', '61200', '--regid', '61200', '--clear-groups', process.execPath]
    return runWith('/usr/bin/setpriv', [...user, '-e', nodeScript(body, copy)])
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** A second process that lives until the test ends it; resolves when it printed its first line. */
export async function startProcess(
  program: string,
  args: readonly string[],
  inherited: readonly number[] = [],
) {
  const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'inherit', ...inherited] })
  const exit = once(child, 'exit')
  const [first] = (await once(child.stdout!, 'data')) as [Buffer]
  return {
    pid: child.pid!,
    firstLine: first.toString().trim(),
    async end(): Promise<void> {
      child.kill('SIGKILL')
      await exit
    },
  }
}
