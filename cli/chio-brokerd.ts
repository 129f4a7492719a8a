#!/usr/bin/env node
// The broker daemon. Wiring only: hygiene, configuration, keys, start, signals.
// Must never: read a key or a configuration before the process is fit to hold one.
import { parseArgs } from 'node:util'
import { type Broker, startBroker } from '../daemon/broker.js'
import { provisionBrokerStore } from '../daemon/broker-store.js'
import { readConfig } from '../daemon/config.js'
import { type BrokerLog, faultFields, openLog } from '../daemon/log.js'
import { systemClock } from '../native/clock.js'
import { ERROR_CODES } from '../protocol/error-codes.js'
import { BrokerError, errorDocument, isBrokerError } from '../protocol/errors.js'
import { signingKey } from '../protocol/keys.js'
import { activatedSockets } from '../system/activation.js'
import { type KeySource, readKey } from '../system/key-file.js'
import { ServiceManager } from '../system/notify.js'
import { type ServiceEnvironment, takeServiceEnvironment } from '../system/service-environment.js'
import { startupHygiene } from '../system/startup.js'
import { onStopSignals } from '../system/stop-signals.js'
import { Supervision } from '../system/supervision.js'

const USAGE =
  'chio-brokerd --config FILE [--provision] (--master-key-fd N | --master-key-file FILE | --master-key-credential NAME) (--receipt-key-fd N | --receipt-key-file FILE | --receipt-key-credential NAME)'

interface Arguments {
  readonly config: string
  readonly masterKey: KeySource
  readonly receiptKey: KeySource
  /** Make the store and end: done once, by init; serving never makes one. */
  readonly provision: boolean
}

function readArguments(args: readonly string[]): Arguments {
  const names = ['config', ...['master', 'receipt'].flatMap(key => SOURCES.map(kind => `${key}-key-${kind}`))]
  const options = Object.fromEntries(names.map(name => [name, { type: 'string', multiple: true } as const]))
  const provision = args.includes(PROVISION)
  const { values } = parse(
    args.filter(argument => argument !== PROVISION),
    options,
  )
  const config = values['config'] ?? []
  if (config.length !== 1 || config[0] === undefined) throw usage('exactly one --config')
  return {
    config: config[0],
    masterKey: sourceOf('master', values),
    receiptKey: sourceOf('receipt', values),
    provision,
  }
}

const PROVISION = '--provision'
const SOURCES = ['fd', 'file', 'credential'] as const
type Values = Readonly<Record<string, readonly string[] | undefined>>

function parse(args: readonly string[], options: Record<string, { type: 'string'; multiple: true }>) {
  try {
    const { values } = parseArgs({ args: [...args], options, strict: true, allowPositionals: false })
    return { values: values as Values }
  } catch {
    throw usage('known options alone')
  }
}

function sourceOf(key: 'master' | 'receipt', values: Values): KeySource {
  const given = SOURCES.flatMap(kind => (values[`${key}-key-${kind}`] ?? []).map(value => ({ kind, value })))
  const [source] = given
  if (source === undefined || given.length !== 1) throw usage(`exactly one --${key}-key-… option`)
  if (source.kind === 'file') return { file: source.value }
  if (source.kind === 'credential') return { credential: source.value }
  if (!/^[0-9]{1,5}$/.test(source.value)) throw usage(`a descriptor number after --${key}-key-fd`)
  return { fd: Number(source.value) }
}

function usage(expected: string): BrokerError {
  return new BrokerError('usage', `arguments refused: expected ${expected}, got something else; ${USAGE}`)
}

async function main(log: BrokerLog): Promise<void> {
  startupHygiene()
  const service = takeServiceEnvironment()
  const given = readArguments(process.argv.slice(2))
  const config = readConfig(given.config)
  if (given.provision) return provisionBrokerStore(config.stateDirectory, systemClock)
  const sockets = activatedSockets(service.listen, [config.socketPath])
  const masterKey = readKey(given.masterKey, 'master key')
  const seed = readKey(given.receiptKey, 'receipt signing key')
  const receiptKey = signingKey(seed)
  seed.fill(0)
  const activatedDescriptor = sockets.get(config.socketPath)
  const broker = await startBroker({
    config,
    masterKey,
    receiptKey,
    clock: systemClock,
    log,
    activatedDescriptor,
  })
  serveUntilStopped(broker, service, log)
}

function serveUntilStopped(broker: Broker, service: ServiceEnvironment, log: BrokerLog): void {
  const onFault = (error: unknown): void =>
    log.error({ event: 'supervision', ...faultFields(error) }, 'service manager not told')
  const manager = new ServiceManager(service, onFault)
  const supervision = new Supervision(manager, broker.supervised(), service, onFault)
  const stop = (signal: NodeJS.Signals): void => {
    log.info({ event: 'stopping', signal }, 'stopping')
    supervision.stopping(`stopping; slot ${broker.slotStatus().state}`, broker.closesWithinMs)
    broker.close().then(
      () => process.exit(0),
      (error: unknown) => end(log, error),
    )
  }
  onStopSignals(stop, () => broker.hurry())
  broker.sayReady()
}

function end(log: BrokerLog, error: unknown): never {
  const said = isBrokerError(error) ? errorDocument(error) : {}
  log.error({ event: 'failed', ...faultFields(error), ...said }, 'chio-brokerd ended')
  process.exit(isBrokerError(error) ? ERROR_CODES[error.code].exitCode : 1)
}

const log = openLog(systemClock)
// A fault that nobody caught ends what it was about, not the daemon: its moves are commits, whole or not at all.
const survive = (error: unknown): void =>
  log.error({ event: 'fault', ...faultFields(error) }, 'uncaught fault')
process.on('unhandledRejection', survive)
process.on('uncaughtException', survive)
main(log).catch((error: unknown) => end(log, error))
