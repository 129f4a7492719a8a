// chio up: both daemons in the foreground, each as its own user when root. Ends both when either ends, and says which
// and how; or when it is told to.
import { packageRoot } from '../native/index.js'
import { brokerCommand, kernelCommand } from '../selftest/daemon-commands.js'
import { type DaemonProcess, endText, lastWords, refusalOf, startDaemon } from '../selftest/daemon-process.js'
import { reachableProgram } from '../selftest/program-copy.js'
import { areSeparate, readIdentities, SINGLE_USER_SENTENCE } from '../system/identities.js'
import { makeSocketFolders } from '../system/installation.js'
import { readPins } from './host-session.js'
import type { CommonOptions } from './output.js'
import { findState, layoutOfState } from './state.js'

/** Starts both daemons and stays until they end. */
export async function up(options: CommonOptions): Promise<void> {
  const layout = layoutOfState(findState(options.state))
  readPins(layout)
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
    onLogLine: tellLogLine,
  }
  const kernel = await startDaemon(kernelCommand(installation))
  const daemons: DaemonProcess[] = [kernel]
  let isStopping = false
  // Each signal of ours is one word: a second one makes a daemon hurry.
  const stop = (): void => {
    isStopping = true
    daemons.forEach(daemon => daemon.signal('SIGTERM'))
  }
  process.on('SIGINT', stop).on('SIGTERM', stop)
  // A terminal that closes says so more than once, and means it once.
  process.on('SIGHUP', () => {
    if (!isStopping) stop()
  })
  try {
    daemons.push(await startDaemon(brokerCommand(installation)))
    console.error(`Serving ${layout.state}. Stop with Ctrl-C.`)
    const first = await Promise.race(daemons.map(daemon => daemon.ended.then(() => daemon)))
    process.exitCode = await exitCodeOf(first, isStopping)
  } finally {
    if (!isStopping) stop()
    await Promise.all(daemons.map(daemon => daemon.exited))
  }
}

/** Their log as it is, but for the line in which a daemon says why it ends: that is said once, as its sentence. */
function tellLogLine(line: string): void {
  if (!isLastWord(line)) console.error(line)
}

function isLastWord(line: string): boolean {
  return refusalOf(line) !== undefined && /"event":"(?:ended|failed)"/.test(line)
}

/** Says which daemon ended and how, unless that was asked for. A signal that we did not send is a failure. */
async function exitCodeOf(daemon: DaemonProcess, wasAsked: boolean): Promise<number> {
  const end = await daemon.ended
  if (!wasAsked) {
    const last = daemon.log.at(-1) ?? ''
    const why = isLastWord(last) ? `: ${lastWords(daemon.log).sentence}` : ''
    console.error(`chio: ${daemon.name} ${endText(end)}${why}; the other daemon is stopped as well`)
  }
  return end.code ?? 1
}
