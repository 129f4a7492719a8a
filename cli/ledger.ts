// chio ledger init | show | extend | accept-clock | adopt: what the owner of an executor does with its ledger between two
// executions, and once before the first.
// Whoever is at the ledger is waited for like every other executor.
// Must never: make a ledger where anything stands, or take the word of the file itself for whose it is: the executor is
// named beside it.
// Source: capacity and clock of the caller execution ledger; ../docs/executor.md.
import { mkdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { ExecutorLedger, type LedgerCounts, MAXIMUM_SEGMENT_OPERATIONS_COUNT } from '../executor/index.js'
import { bootIdentity, systemClock } from '../native/clock.js'
import { CallerExecutor } from '../protocol/caller-authorization.js'
import { decode, encode } from '../protocol/codec.js'
import { BrokerError } from '../protocol/errors.js'
import type { SigningKey } from '../protocol/keys.js'
import { makeKeyFile, readKey } from '../system/key-file.js'
import { retainFileNow } from '../system/retained-file.js'
import { readSmallFile } from './line-file.js'
import { namedText } from './named-text.js'
import { type CommonOptions, given, print } from './output.js'
import { withKeyOf, withWiped } from './wiped-key.js'

const MAXIMUM_EXECUTOR_BYTES = 4_096
const NEWLINE = 0x0a
const LINE_END = Buffer.of(NEWLINE)

export interface LedgerCommandOptions extends CommonOptions {
  /** File with the executor as the kernel pins it: executor_id, key_epoch, public_key. */
  readonly executor: string
}

export interface SignedLedgerOptions extends LedgerCommandOptions {
  /** File with the executor's private key. */
  readonly key: string
}

export interface NewExecutorOptions extends CommonOptions {
  /** What the kernel's configuration calls it. */
  readonly id: string
  /** Operations of the first segment. */
  readonly capacity: string
}

/** Makes a new executor in a folder of its own: its key, the pin of its first epoch, its ledger. */
export async function initialiseExecutor(folder: string, options: NewExecutorOptions): Promise<void> {
  const directory = resolve(folder)
  const executorId = namedText(options.id, '--id')
  const capacity = segmentOperations(options.capacity, '--capacity')
  mkdirSync(directory, { mode: 0o700 })
  const executor = await withWiped(makeKeyFile(join(directory, 'executor.key')), async key => {
    const pin = { executor_id: executorId, key_epoch: 1, public_key: key.publicKey }
    retainFileNow(
      join(directory, 'executor.json'),
      Buffer.concat([encode(CallerExecutor, pin), LINE_END]),
      0o600,
    )
    await ExecutorLedger.provision(
      join(directory, 'ledger.db'),
      { capacity, executor: pin, key },
      ledgerTime(),
    )
    return pin
  })
  print(options, { schema: 'chio.executor-made.v1', directory, capacity, executor }, [
    `Executor ${executorId}: executor.key, executor.json and ledger.db in ${directory}`,
    `public key   ${executor.public_key}, epoch 1`,
  ])
}

export async function showLedger(file: string, options: LedgerCommandOptions): Promise<void> {
  const { ledger, path } = await opened(file, options)
  const counts = await ledger.counts()
  print(options, { schema: 'chio.ledger.v1', ledger: path, ...counts }, ledgerLines(counts))
}

/** Makes room for `by` operations more, 1 to 64; all that stands stays where it is. */
export async function extendLedger(
  file: string,
  options: SignedLedgerOptions & { readonly by: string },
): Promise<void> {
  const added = segmentOperations(options.by, '--by')
  const { ledger, path } = await opened(file, options)
  const counts = await withKey(options.key, key => ledger.extend(added, key))
  print(options, { schema: 'chio.ledger-extended.v1', ledger: path, added, ...counts }, [
    `segment ${counts.segments} signed: room for ${added} more`,
    ...ledgerLines(counts),
  ])
}

/** Signs that the wall clock is right as it is; without it a clock that was once ahead stops an executor. */
export async function acceptLedgerClock(file: string, options: SignedLedgerOptions): Promise<void> {
  const { ledger, path } = await opened(file, options)
  const correction = await withKey(options.key, key => ledger.acceptClock(key))
  const [from, to] = [correction.from_unix_ms, correction.to_unix_ms].map(at => new Date(at).toISOString())
  print(options, { schema: 'chio.ledger-clock-accepted.v1', ledger: path, correction }, [
    `wall clock ${to} accepted as it is; the newest commit was made at ${from}`,
  ])
}

/** Signs that the number of the ledger's disk alone has changed. */
export async function adoptLedgerDevice(file: string, options: SignedLedgerOptions): Promise<void> {
  const path = resolve(file)
  const executor = readExecutor(options.executor)
  const change = await withKey(options.key, key =>
    ExecutorLedger.adopt(path, { executor, key }, ledgerTime()),
  )
  print(options, { schema: 'chio.ledger-adopted.v1', ledger: path, ...change }, [
    `device ${change.foundDevice} accepted in the place of ${change.pinnedDevice}`,
  ])
}

async function opened(file: string, { executor }: LedgerCommandOptions) {
  const path = resolve(file)
  return { ledger: await ExecutorLedger.open(path, readExecutor(executor), ledgerTime()), path }
}

function ledgerTime() {
  return { bootId: bootIdentity(), clock: systemClock }
}

/** One canonical line. */
function readExecutor(file: string): CallerExecutor {
  const bytes = readSmallFile(resolve(file), 'executor', MAXIMUM_EXECUTOR_BYTES)
  return decode(CallerExecutor, bytes.at(-1) === NEWLINE ? bytes.subarray(0, -1) : bytes, 'executor')
}

function withKey<T>(file: string, act: (key: SigningKey) => Promise<T>): Promise<T> {
  return withKeyOf(readKey({ file: resolve(file) }, 'executor key'), act)
}

function segmentOperations(text: string, option: string): number {
  const operations = /^[0-9]{1,9}$/.test(text) ? Number(text) : 0
  if (operations >= 1 && operations <= MAXIMUM_SEGMENT_OPERATIONS_COUNT) return operations
  const expected = `a whole number from 1 to ${MAXIMUM_SEGMENT_OPERATIONS_COUNT}`
  throw new BrokerError('usage', `${option} refused: expected ${expected}, got ${given(text)}`)
}

function ledgerLines({ capacity, claims, reports, segments }: LedgerCounts): string[] {
  const unknown = claims - reports
  return [
    `claims    ${claims} of ${capacity}, in ${segments} segment${segments === 1 ? '' : 's'}`,
    `reports   ${reports}`,
    ...(unknown === 0
      ? []
      : [`unknown   ${unknown}: claimed, without a report; never called again, look at what they did`]),
  ]
}
