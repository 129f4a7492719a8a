// Owns the rival of our launch: bwrap with the very arguments of our cage, starting the tool itself, without
// cage-init, filter, limits, handoff and census.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { type CagePolicy, findBubblewrap } from '../cage/index.js'
import { cageIdentity } from '../cage/identity.js'
import { OwnedDescriptors } from '../cage/owned-descriptors.js'
import { placeFiles, readHostView } from '../cage/placement.js'
import { ARGUMENTS_FD, FIRST_DATA_FD, givenTool, isInView, planCage } from '../cage/plan.js'
import { STREAM_FD } from '../cage/seccomp.js'
import { sealedMemfd } from '../native/index.js'

/** @param streamFd what the tool finds at descriptor 8; nothing when undefined. */
export function startBare(policy: CagePolicy, streamFd?: number): ChildProcess {
  const made = new OwnedDescriptors()
  try {
    const view = readHostView()
    const identity = cageIdentity(policy.identity)
    const { placements, given } = placeFiles(policy, view, identity, made)
    const architecture = process.arch === 'arm64' ? 'arm64' : 'x64'
    const { options } = planCage(policy, { architecture, view, placements })
    const packed = Buffer.from(options.map(option => `${option}\0`).join(''), 'utf8')
    const stdio: ('ignore' | number)[] = Array.from({ length: FIRST_DATA_FD }, () => 'ignore')
    if (streamFd !== undefined) stdio[STREAM_FD] = streamFd
    stdio[ARGUMENTS_FD] = made.own(sealedMemfd('bare-bwrap-args', packed))
    const { path } = policy.tool
    const inside = isInView(path, policy, view) ? path : givenTool(path).at
    const command = ['--args', String(ARGUMENTS_FD), '--', inside, ...policy.tool.argv.slice(1)]
    const asOther = process.geteuid?.() === 0 ? identity : {}
    const bubblewrap = findBubblewrap().path
    return spawn(bubblewrap, command, { stdio: [...stdio, ...given], cwd: '/', env: {}, ...asOther })
  } finally {
    made.closeAll()
  }
}

/** Waits for its end, whatever its exit code. @throws Error when it could not be started. */
export async function endOf(child: ChildProcess): Promise<void> {
  await once(child, 'exit')
}
