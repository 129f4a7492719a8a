// chio ledger show | extend | accept-clock: what the owner of an executor does with its ledger between two executions.
// Whoever is at the ledger is waited for like every other executor.
// Must never: make a ledger, or take the word of the file itself for whose it is: the executor is named beside it.
// Source: capacity and clock of the caller execution ledger; ../docs/executor.md.
import { resolve } from 'node:path'
import { ExecutorLedger, type LedgerCounts, MAXIMUM_SEGMENT_OPERATIONS_COUNT } from '../executor/index.js'
import { bootIdentity, systemClock } from '../native/clock.js'
import { CallerExecutor } from '../protocol/caller-authorization.js'
import { decode } from '../protocol/codec.js'
import { BrokerError } from '../protocol/errors.js'
import { type SigningKey, signingKey } from '../protocol/keys.js'
import { readKey } from '../system/key-file.js'
import { readSmallFile } from './line-file.js'
import { type CommonOptions, given, print } from './output.js'

const MAXIMUM_EXECUTOR_BYTES = 4_096
const NEWLINE = 0x0a

export interface LedgerCommandOptions extends CommonOptions {
  /** File with the executor as the kernel pins it: executor_id, key_epoch, public_key. */
  readonly executor: string
}

export interface SignedLedgerOptions extends LedgerCommandOptions {
  /** File with the executor's private key. */
  readonly key: string
}

export async function showLedger(file: string, options: LedgerCommandOptions): Promise<void> {
  const { counts, path } = await opened(file, options)
  print(options, { schema: 'chio.ledger.v1', ledger: path, ...counts }, ledgerLines(counts))
}

/** Makes room for `by` operations more, 1 to 64; all that stands stays where it is. */
export async function extendLedger(
  file: string,
  options: SignedLedgerOptions & { readonly by: string },
): Promise<void> {
  const added = segmentOperations(options.by)
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

interface OpenedLedger {
  readonly ledger: ExecutorLedger
  readonly counts: LedgerCounts
  readonly path: string
}

async function opened(file: string, { executor }: LedgerCommandOptions): Promise<OpenedLedger> {
  const path = resolve(file)
  const options = { bootId: bootIdentity(), clock: systemClock }
  const ledger = await ExecutorLedger.open(path, readExecutor(executor), options)
  return { counts: await ledger.counts(), ledger, path }
}

/** One canonical line, as `review-note init` writes it. */
function readExecutor(file: string): CallerExecutor {
  const bytes = readSmallFile(resolve(file), 'executor', MAXIMUM_EXECUTOR_BYTES)
  return decode(CallerExecutor, bytes.at(-1) === NEWLINE ? bytes.subarray(0, -1) : bytes, 'executor')
}

async function withKey<T>(file: string, act: (key: SigningKey) => Promise<T>): Promise<T> {
  const seed = readKey({ file: resolve(file) }, 'executor key')
  const key = signingKey(seed)
  seed.fill(0)
  try {
    return await act(key)
  } finally {
    key.wipe()
  }
}

function segmentOperations(text: string): number {
  const operations = /^[0-9]{1,9}$/.test(text) ? Number(text) : 0
  if (operations >= 1 && operations <= MAXIMUM_SEGMENT_OPERATIONS_COUNT) return operations
  const expected = `a whole number from 1 to ${MAXIMUM_SEGMENT_OPERATIONS_COUNT}`
  throw new BrokerError('usage', `--by refused: expected ${expected}, got ${given(text)}`)
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
