#!/usr/bin/env node
// The kernel daemon. Wiring only: hygiene, configuration, keys, the broker's records, start, signals.
// Must never: read a key or a configuration before the process is fit to hold one.
import { parseArgs } from 'node:util'
import { pino } from 'pino'
import { BrokerRecordsClient } from '../client/broker-records.js'
import { brokerPins, type KernelConfig, readKernelConfig } from '../kernel/config.js'
import { faultFields } from '../kernel/fault-fields.js'
import { KERNEL_CLOSES_WITHIN_MS } from '../kernel/serving/kernel-end.js'
import { KERNEL_KEY_NAMES, type KeyChoices, readKernelKeys } from '../kernel/kernel-keys.js'
import type { KernelLog } from '../kernel/kernel-context.js'
import { provisionKernel, startKernel } from '../kernel/start-kernel.js'
import { systemClock } from '../native/clock.js'
import { ERROR_CODES } from '../protocol/error-codes.js'
import { BrokerError, errorDocument, isBrokerError } from '../protocol/errors.js'
import { activatedSockets } from '../system/activation.js'
import { ServiceManager } from '../system/notify.js'
import { type ServiceEnvironment, takeServiceEnvironment } from '../system/service-environment.js'
import { startupHygiene } from '../system/startup.js'
import { onStopSignals } from '../system/stop-signals.js'
import { Supervision } from '../system/supervision.js'

const FORMS = ['file', 'fd', 'credential'] as const
const USAGE = `chio-kerneld --config FILE [--provision] and one of --X-key-file PATH, --X-key-fd N, --X-key-credential NAME for each X of ${KERNEL_KEY_NAMES.join(', ')}`

const log = pino(
  { name: 'chio-kerneld', timestamp: () => `,"time":${systemClock.unixMs()}` },
  pino.destination({ dest: 2, sync: true }),
)
const logEvent: KernelLog = ({ level, ...fields }) => log[level](fields)

interface Arguments {
  readonly config: string
  /** Make the store and end: done once, by init; serving never makes one. */
  readonly provision: boolean
  readonly keys: KeyChoices
}

function readArguments(args: readonly string[]): Arguments {
  const { config, provision, ...values } = parse(args)
  if (typeof config !== 'string') throw usage('--config FILE')
  const text = (name: string, form: string): string | undefined => {
    const value = values[`${name}-key-${form}`]
    return typeof value === 'string' ? value : undefined
  }
  const keys = KERNEL_KEY_NAMES.map(name => [
    name,
    Object.fromEntries(FORMS.map(form => [form, text(name, form)])),
  ])
  return { config, keys: Object.fromEntries(keys) as KeyChoices, provision: provision === true }
}

function parse(args: readonly string[]): Record<string, string | boolean | undefined> {
  const keyOptions = KERNEL_KEY_NAMES.flatMap(name => FORMS.map(form => `${name}-key-${form}`))
  const options = Object.fromEntries(
    ['config', ...keyOptions].map(name => [name, { type: 'string' } as const]),
  )
  try {
    const all = { ...options, provision: { type: 'boolean' } as const }
    return parseArgs({ args: [...args], options: all, strict: true, allowPositionals: false }).values
  } catch {
    throw usage('known options alone')
  }
}

function usage(expected: string): BrokerError {
  return new BrokerError('usage', `arguments refused: expected ${expected}, got something else; ${USAGE}`)
}

/** The kernel is a client of the broker like any host. */
function brokerRecords(config: KernelConfig): BrokerRecordsClient {
  return new BrokerRecordsClient(brokerPins(config), systemClock)
}

async function serve(config: KernelConfig, choices: KeyChoices, service: ServiceEnvironment): Promise<void> {
  const activated = activatedSockets(service.listen, [config.authoritySocketPath, config.hostSocketPath])
  const keys = readKernelKeys(choices)
  const records = brokerRecords(config)
  const options = { clock: systemClock, config, keys, log: logEvent, records }
  // A process that lost its store may not even close it: closing writes.
  const running = await startKernel({ ...options, activated, onFenced: end })
  const onFault = (error: unknown): void => log.error({ event: 'supervision', ...faultFields(error) })
  const manager = new ServiceManager(service, onFault)
  const supervision = new Supervision(manager, running.supervised(), service, onFault)
  const stop = (signal: NodeJS.Signals): void => {
    log.info({ event: 'stopping', signal })
    supervision.stopping('stopping', KERNEL_CLOSES_WITHIN_MS)
    running.close().then(() => {
      keys.wipe()
      process.exit(0)
    }, end)
  }
  onStopSignals(stop, () => running.hurry())
  log.info({ event: 'ready', ownerEpoch: running.ownerEpoch, ...running.publicKeys })
}

async function main(): Promise<void> {
  startupHygiene()
  const service = takeServiceEnvironment()
  const given = readArguments(process.argv.slice(2))
  const config = readKernelConfig(given.config)
  if (given.provision) await provisionKernel(config, systemClock)
  else await serve(config, given.keys, service)
}

function end(error: unknown): never {
  const said = isBrokerError(error) ? errorDocument(error) : {}
  log.fatal({ event: 'ended', ...faultFields(error), ...said })
  process.exit(isBrokerError(error) ? ERROR_CODES[error.code].exitCode : 1)
}

main().catch(end)
