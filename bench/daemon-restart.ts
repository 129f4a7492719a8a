// Owns the daemons of a trial that a row stops and starts again: where they are, as whom, from which program.
// Must never: leave one running that the trial does not know of.
import { brokerCommand, kernelCommand } from '../selftest/daemon-commands.js'
import { type DaemonProcess, startDaemon } from '../selftest/daemon-process.js'
import type { Trial } from '../selftest/trial.js'

/** Starts the broker of a trial whose own one was stopped. */
export function startBrokerOf(trial: Trial): Promise<DaemonProcess> {
  return startDaemon(brokerCommand(trial))
}

/** Stops both daemons, does something with their files, and starts both again. @returns the new ones. */
export async function whileStopped(trial: Trial, work: () => Promise<void>): Promise<DaemonProcess[]> {
  await Promise.all([trial.broker.stop(), trial.kernel.stop()])
  await work()
  const kernel = await startDaemon(kernelCommand(trial))
  try {
    return [kernel, await startBrokerOf(trial)]
  } catch (error) {
    await kernel.stop()
    throw error
  }
}
