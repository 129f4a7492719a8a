// Owns the cages of a run: the policy of each tool, the smallest tool, built on the spot, and the way from a launch
// or a handoff to the first byte that the tool says.
// Must never: start a tool that the cage of a real run would not start in the same way.
import { execFileSync } from 'node:child_process'
import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  type CagePolicy,
  cagePolicy,
  openCage,
  resolveTool,
  type RunningCage,
  type WaitingCage,
} from '../cage/index.js'
import { deadlineAfter } from '../system/deadline.js'
import { systemClock } from '../native/clock.js'
import { closeDescriptor, nativePath, packageRoot, readExact, socketPair } from '../native/index.js'
import { encodeFrame } from '../protocol/frame.js'
import { freeIds } from '../selftest/free-ids.js'
import { issueBody } from './request-body.js'

const BUDGET_MS = 20_000
const OPEN_FOLDER = 0o755

/** What is handed over where no broker is behind the stream; the tool does not read it. */
const FRAME = encodeFrame(issueBody())

export interface BenchCages {
  /** The static tool that submits the frame and prints the answer. */
  readonly chioExec: CagePolicy
  /** The static tool that says one byte on its stream. */
  readonly firstByte: CagePolicy
  readonly true: CagePolicy
  remove(): void
}

/** Root gets an id that nobody uses for all cages of the run; anyone else cages as itself. */
export function makeCages(): BenchCages {
  const [id] = process.geteuid?.() === 0 ? freeIds(1) : []
  const identity = id === undefined ? null : { uid: id, gid: id }
  const folder = mkdtempSync(join(tmpdir(), 'chio-bench-tools-'))
  chmodSync(folder, OPEN_FOLDER)
  const policyOf = (command: string): CagePolicy => {
    const { tool, files, profile } = resolveTool(command)
    return cagePolicy({ tool, files, profile, exec: 'once', identity })
  }
  return {
    chioExec: policyOf(nativePath('chio-exec')),
    firstByte: policyOf(buildFirstByte(folder)),
    true: policyOf('true'),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  }
}

function buildFirstByte(folder: string): string {
  const source = join(packageRoot(), 'bench', 'tools', 'first-byte.c')
  const program = join(folder, 'first-byte')
  execFileSync('cc', ['-std=c17', '-O2', '-static', '-Wall', '-Werror', '-o', program, source])
  chmodSync(program, OPEN_FOLDER)
  return program
}

/** A stream pair of which the tool gets one end; the other one is the broker's place. */
export class ToolStream {
  readonly tool: number
  readonly #broker: number

  constructor() {
    const [tool, broker] = socketPair('stream')
    this.tool = tool
    this.#broker = broker
  }

  async firstByte(): Promise<void> {
    await readExact(this.#broker, 1, deadlineAfter(systemClock, BUDGET_MS))
  }

  close(): void {
    closeDescriptor(this.tool)
    closeDescriptor(this.#broker)
  }
}

/** From the handoff message to the tool's first byte, every wall and the census in between. */
export async function firstByteOfHandoff(cage: WaitingCage, stream: ToolStream): Promise<RunningCage> {
  const armed = await cage.handOff(stream.tool, FRAME)
  const running = armed.go()
  await stream.firstByte()
  return running
}

/** From nothing to the tool's first byte. */
export async function firstByteOfLaunch(policy: CagePolicy, stream: ToolStream): Promise<RunningCage> {
  return firstByteOfHandoff(await openCage(policy), stream)
}

/** From nothing to the end of a tool that neither reads nor writes. */
export async function runToEnd(policy: CagePolicy): Promise<void> {
  const stream = new ToolStream()
  try {
    const cage = await openCage(policy)
    await (await cage.handOff(stream.tool, FRAME)).go().finished
  } finally {
    stream.close()
  }
}
