// Owns a profiled run: both daemons restarted under the profiler, so many whole operations, and a .cpuprofile of
// each in the output folder, to be opened in any viewer of V8 profiles.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { brokerCommand, kernelCommand } from '../selftest/daemon-commands.js'
import type { DaemonCommand } from '../selftest/daemon-process.js'
import type { Trial } from '../selftest/trial.js'
import { allowedEnvironment } from '../system/environment.js'
import { openInstallation } from './installation.js'
import { wholeOperation } from './operation.js'

const READY_EVENT = '"event":"ready"'
const DEFAULT_OPERATIONS = 300
const DAEMONS = ['kernel', 'broker'] as const

/** @returns the files that were written. */
export async function profileOperations(rounds: number | null, folder: string): Promise<string[]> {
  const installation = await openInstallation()
  const { trial } = installation
  const profiled: ChildProcess[] = []
  try {
    await Promise.all([trial.broker.stop(), trial.kernel.stop()])
    for (const kind of DAEMONS) profiled.push(await startProfiled(trial, kind))
    const session = trial.openHost()
    for (let done = 0; done < (rounds ?? DEFAULT_OPERATIONS); done++) {
      await wholeOperation({ ...installation, session })
    }
    session.close()
    await Promise.all(profiled.splice(0).map(endOf))
    return keepProfiles(trial, folder)
  } finally {
    await Promise.all(profiled.map(endOf))
    await installation.close()
  }
}

function profilePlace(trial: Trial, kind: (typeof DAEMONS)[number]): string {
  return join(trial.layout[kind].directory, 'bench.cpuprofile')
}

async function startProfiled(trial: Trial, kind: (typeof DAEMONS)[number]): Promise<ChildProcess> {
  const command = kind === 'broker' ? brokerCommand(trial) : kernelCommand(trial)
  const child = spawn('setpriv', argumentsOf(command, profilePlace(trial, kind)), {
    cwd: '/',
    env: allowedEnvironment({}),
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const lines = createInterface({ input: child.stderr as NodeJS.ReadableStream })
  for await (const line of lines) if (line.includes(READY_EVENT)) break
  child.stderr?.resume()
  if (child.exitCode !== null)
    throw new Error(`${command.name} ended with ${child.exitCode} before it served`)
  return child
}

function argumentsOf({ args, groups, identity, name, programRoot }: DaemonCommand, file: string): string[] {
  const apart = process.geteuid?.() === 0 && identity.uid !== 0
  const ids = apart
    ? [`--reuid=${identity.uid}`, `--regid=${identity.gid}`, `--groups=${groups.join(',')}`]
    : []
  const program = join(programRoot, 'dist', 'bench', 'profiled-daemon.js')
  return [...ids, '--pdeathsig=TERM', '--', process.execPath, program, file, name, ...args]
}

async function endOf(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return
  child.kill('SIGTERM')
  await once(child, 'exit')
}

function keepProfiles(trial: Trial, folder: string): string[] {
  mkdirSync(folder, { recursive: true })
  return DAEMONS.map(kind => {
    const kept = join(folder, `${kind}.cpuprofile`)
    copyFileSync(profilePlace(trial, kind), kept)
    return kept
  })
}
