// Owns an installation whose daemons keep a history: so many retained operations in both stores, copied from one
// real operation while the daemons are stopped.
import type { DaemonProcess } from '../selftest/daemon-process.js'
import { BenchProcess } from './bench-process.js'
import { whileStopped } from './daemon-restart.js'
import { type Installation, openInstallation } from './installation.js'
import { wholeOperation } from './operation.js'

export async function openRetainedInstallation(retained: number): Promise<Installation> {
  const installation = await openInstallation()
  const { trial, session } = installation
  const daemons: DaemonProcess[] = []
  let reopened = session
  const close = async (): Promise<void> => {
    reopened.close()
    await Promise.all(daemons.map(daemon => daemon.stop()))
    await installation.close()
  }
  try {
    const operationId = await wholeOperation(installation)
    session.close()
    daemons.push(...(await whileStopped(trial, () => fill(installation, operationId, retained))))
    reopened = trial.openHost()
    return { ...installation, session: reopened, close }
  } catch (error) {
    await close()
    throw error
  }
}

/** Both stores at once: they are two files of two owners. */
async function fill({ trial }: Installation, operationId: string, count: number): Promise<void> {
  const { layout, identities, programRoot } = trial
  const fillings = (['broker', 'kernel'] as const).map(kind => {
    const args = [kind, layout[kind].directory, operationId, String(count)]
    return BenchProcess.start('fill-process', { args, programRoot, identity: identities[kind] }).finished()
  })
  await Promise.all(fillings)
}
