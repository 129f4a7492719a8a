// How each daemon of an installation is started: its configuration, its keys, its uid and groups. The
// kernel is in the broker's group (to replay and release), the broker in the kernel's (to ask authority).
import { areSeparate, type Identities } from '../system/identities.js'
import type { Layout } from '../system/layout.js'
import { type DaemonCommand, runDaemonOnce } from './daemon-process.js'

/** An installation that can be started. */
export interface StartableInstallation {
  readonly layout: Layout
  readonly identities: Identities
  readonly programRoot: string
  /** Put before each daemon's command. */
  readonly wrapper?: readonly string[]
  readonly onLogLine?: (line: string) => void
}

export type DaemonRole = 'broker' | 'kernel'

export function brokerCommand(installation: StartableInstallation): DaemonCommand {
  const { config, masterKey, receiptKey } = installation.layout.broker
  return {
    ...startOf(installation, 'broker'),
    name: 'chio-brokerd',
    args: ['--config', config, '--master-key-file', masterKey, '--receipt-key-file', receiptKey],
  }
}

export function kernelCommand(installation: StartableInstallation): DaemonCommand {
  const { config, keys } = installation.layout.kernel
  const keyArguments = Object.entries(keys).flatMap(([name, path]) => [`--${name}-key-file`, path])
  return {
    ...startOf(installation, 'kernel'),
    name: 'chio-kerneld',
    args: ['--config', config, ...keyArguments],
  }
}

function startOf(installation: StartableInstallation, role: DaemonRole) {
  const { identities, programRoot, wrapper, onLogLine } = installation
  const identity = identities[role]
  const groups = areSeparate(identities)
    ? [...new Set([identity.gid, identities.broker.gid, identities.kernel.gid])]
    : []
  return { identity, groups, programRoot, ...(wrapper && { wrapper }), ...(onLogLine && { onLogLine }) }
}

/** Makes both stores, each by its own daemon's binary under its own uid. */
export async function provisionStores(installation: StartableInstallation): Promise<void> {
  for (const command of [kernelCommand(installation), brokerCommand(installation)]) {
    await runDaemonOnce({ ...command, args: [...command.args, '--provision'] })
  }
}
