/**
 * Cages for tests: ids of their own for root, a frame, a peer in the broker's place, C tools built on the spot.
 * Every cage that is opened here is real; the peer is the other end of a plain socket pair.
 */
import { execFileSync } from 'node:child_process'
import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'vitest'
import { openCage, type OpenOptions, type WaitingCage } from '../../cage/cage.js'
import { cagePolicy, type CageIdentity, type CagePolicyChoices } from '../../cage/policy.js'
import { CageRefusal } from '../../cage/refusal.js'
import type { FinishedTool } from '../../cage/running.js'
import { resolveTool } from '../../cage/tool.js'
import { closeDescriptor, readFrame, shutdownWrite, socketPair, writeFully } from '../../native/index.js'
import { encodeFrame } from '../../protocol/frame.js'
import { deadlineIn } from './descriptors.js'

export const isRoot = process.geteuid!() === 0

/** A uid that nobody has, in the range that is left to such uses; null for a user, who runs cages as itself. */
export const testIdentity: CageIdentity | null = isRoot
  ? { uid: 61_184 + (process.pid % 4_000), gid: 61_184 + (process.pid % 4_000) }
  : null

export const requestBody = Buffer.from('{"method":"POST","note":"fd 8"}')
export const requestFrame = encodeFrame(requestBody)
export const answerBody = Buffer.from('{"ok":true}')

/** A folder that other uids can enter, gone with `remove`. */
export function openFolder(): { path: string; remove(): void } {
  const path = mkdtempSync(join(tmpdir(), 'chio-cage-'))
  chmodSync(path, 0o755)
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) }
}

/** Builds test/cage/tools/NAME.c statically into the folder. */
export function buildTool(name: string, folder: string): string {
  const source = fileURLToPath(new URL(`../cage/tools/${name}.c`, import.meta.url))
  const program = join(folder, name)
  execFileSync('gcc', [
    '-std=c17',
    '-D_GNU_SOURCE',
    '-Wall',
    '-Werror',
    '-O1',
    '-static',
    '-o',
    program,
    source,
  ])
  chmodSync(program, 0o755)
  return program
}

export async function openTestCage(
  choices: CagePolicyChoices,
  options: OpenOptions = {},
): Promise<WaitingCage> {
  return openCage(cagePolicy({ identity: testIdentity, ...choices }), options)
}

export interface Peer {
  readonly fd: number
  receive(): Promise<Uint8Array | null>
  answer(body?: Uint8Array): Promise<void>
}

function peerOn(fd: number): Peer {
  return {
    fd,
    receive: async () => readFrame(fd, { maximumFrameBytes: 1 << 20, deadlineBootNs: deadlineIn(20_000) }),
    answer: async (body = answerBody) => writeFully(fd, encodeFrame(body), deadlineIn(20_000)),
  }
}

/** The usual broker: takes one frame, answers it, ends its side. */
export async function serveOnce(peer: Peer): Promise<Uint8Array | null> {
  const received = await peer.receive()
  await peer.answer()
  shutdownWrite(peer.fd)
  return received
}

export interface Caged {
  readonly finished: FinishedTool
  readonly stdout: string
  readonly stderr: string
}

/** One tool from handoff to end, against a peer. */
export async function runCaged(
  choices: CagePolicyChoices,
  serve: (peer: Peer) => Promise<unknown> = async () => undefined,
): Promise<Caged> {
  const [peer, stream] = socketPair('stream')
  const waiting = await openTestCage(choices)
  try {
    const armed = await waiting.handOff(stream, requestFrame)
    closeDescriptor(stream)
    const running = armed.go()
    await running.started
    await serve(peerOn(peer))
    const finished = await running.finished
    const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString()
    return { finished, stdout: text(finished.stdout), stderr: text(finished.stderr) }
  } finally {
    await waiting.close()
    closeDescriptor(peer)
  }
}

/** Runs a shell line; the shell needs more than one exec. */
export async function runShell(line: string, serve?: (peer: Peer) => Promise<unknown>): Promise<Caged> {
  const { tool } = resolveTool('/bin/sh', ['-c', line])
  return runCaged({ tool, exec: 'allowed' }, serve)
}

export async function runPython(body: string, serve?: (peer: Peer) => Promise<unknown>): Promise<Caged> {
  return runCaged(resolveTool('/usr/bin/python3', ['-c', body]), serve)
}

/** By the State line: zombies that process 1 of the machine has not reaped are dead. */
export function isAlive(pid: number): boolean {
  try {
    const status = execFileSync('cat', [`/proc/${pid}/status`], {
      stdio: ['ignore', 'pipe', 'ignore'],
    }).toString()
    return !/^State:\s+[ZX]/m.test(status)
  } catch {
    return false
  }
}

/** What the action refuses with; fails when it does anything else. */
export async function refusalOf(action: () => unknown): Promise<CageRefusal> {
  const error: unknown = await Promise.resolve()
    .then(action)
    .then(
      () => undefined,
      (thrown: unknown) => thrown,
    )
  expect(error).toBeInstanceOf(CageRefusal)
  expect(error).toMatchObject({ code: 'cage_refused', outcome: 'not_started' })
  return error as CageRefusal
}
