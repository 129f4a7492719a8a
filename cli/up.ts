// chio up: both daemons in the foreground, each as its own user when root. Ends both when either ends or
// when it is told to.
import { packageRoot } from '../native/index.js'
import { brokerCommand, kernelCommand } from '../selftest/daemon-commands.js'
import { type DaemonProcess, startDaemon } from '../selftest/daemon-process.js'
import { reachableProgram } from '../selftest/program-copy.js'
import { areSeparate, readIdentities, SINGLE_USER_SENTENCE } from '../system/identities.js'
import { makeSocketFolders } from '../system/installation.js'
import type { CommonOptions } from './output.js'
import { findState, layoutOfState } from './state.js'

/** Starts both daemons and stays until they end. */
export async function up(options: CommonOptions): Promise<void> {
  const layout = layoutOfState(findState(options.state))
  const identities = readIdentities(layout.identities)
  const separate = areSeparate(identities)
  if (process.geteuid?.() === 0) makeSocketFolders(layout, identities)
  const program = separate ? reachableProgram(layout.state) : { root: packageRoot(), copied: false }
  if (program.copied)
    console.error(`Other users cannot reach ${packageRoot()}: the daemons run the copy in ${program.root}.`)
  if (!separate) console.error(SINGLE_USER_SENTENCE)
  const installation = {
    layout,
    identities,
    programRoot: program.root,
    onLogLine: (line: string) => console.error(line),
  }
  const kernel = await startDaemon(kernelCommand(installation))
  const daemons: DaemonProcess[] = [kernel]
  const stop = (): void => daemons.forEach(daemon => daemon.signal('SIGTERM'))
  process.on('SIGINT', stop).on('SIGTERM', stop)
  try {
    daemons.push(await startDaemon(brokerCommand(installation)))
    console.error(`Serving ${layout.state}. Stop with Ctrl-C.`)
    process.exitCode = await Promise.race(daemons.map(daemon => daemon.exited))
  } finally {
    stop()
    await Promise.all(daemons.map(daemon => daemon.exited))
  }
}
