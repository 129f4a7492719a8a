// A tool that ends and leaves a process behind, which forked twice, left its session and hears no signal: with the tool
// all of its cage must be gone. Asked of a handle on process 1, which is dead when everything in its namespace is.
// Never of pids or namespace numbers: Linux gives both away again.
// Source: pid_namespaces(7), pidfd_open(2).
import { cagePolicy, type CageIdentity, openCage, resolveTool } from '../../cage/index.js'
import { systemClock } from '../../native/clock.js'
import {
  awaitReadable,
  closeDescriptor,
  hungUp,
  nativePath,
  pidfdOpen,
  socketPair,
} from '../../native/index.js'

const PATIENCE_NS = 10_000_000_000n
const FRAME = Uint8Array.of(0, 0, 0, 1, 0)

/** @returns whether anything of the cage was left, ten seconds after its tool ended. */
export async function outlivesTool(identity: CageIdentity | null): Promise<boolean> {
  const [peer, stream] = socketPair('stream')
  const policy = cagePolicy({ ...resolveTool(nativePath('cage-probe'), ['leave']), exec: 'once', identity })
  const waiting = await openCage(policy)
  const warden = pidfdOpen(waiting.census.wardenPid)
  try {
    const armed = await waiting.handOff(stream, FRAME).finally(() => closeDescriptor(stream))
    await armed.go().finished
    await awaitReadable(warden, systemClock.bootNs() + PATIENCE_NS)
    return !hungUp(peer)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ETIMEDOUT') return true
    throw error
  } finally {
    await waiting.close()
    closeDescriptor(warden)
    closeDescriptor(peer)
  }
}
