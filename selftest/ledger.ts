// The comparison of an executor's ledger with itself, on this very machine: a report that is replayed, what is refused in
// its place, and a claim whose result was lost. Each is told with what was counted.
// The authorization is a signed fixture of this check: no kernel started anything, and no provider was asked.
// Source: the executor comparison of caller delivery.
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ExecutorLedger, type LedgerOptions } from '../executor/ledger.js'
import { bootIdentity, systemClock } from '../native/clock.js'
import {
  type CallerAuthorization,
  type CallerExecutor,
  callerTransportId,
  signCallerAuthorization,
} from '../protocol/caller-authorization.js'
import { sha256Hex } from '../protocol/digest.js'
import { type ErrorCode, isBrokerError } from '../protocol/errors.js'
import { KEY_BYTES } from '../protocol/limits.js'
import { type SigningKey, signingKey } from '../protocol/keys.js'
import { CaseFailure, expectEqual } from './case-result.js'

export const LEDGER_CHECKS = ['REPLAY', 'REFUSE', 'UNKNOWN'] as const
export type LedgerCheckName = (typeof LEDGER_CHECKS)[number]

export interface LedgerCheck {
  readonly name: LedgerCheckName
  readonly ok: boolean
  /** What was proved, or what was found instead. */
  readonly proved: string
  /** What was counted. */
  readonly counts: Readonly<Record<string, number>>
}

interface Fixture {
  readonly authorization: CallerAuthorization
  readonly executor: CallerExecutor
  readonly executorKey: SigningKey
  readonly kernelKey: SigningKey
  readonly folder: string
  readonly options: LedgerOptions
}

const CAPACITY = 2

/** Runs the three checks in a private folder of their own, which goes afterwards. */
export async function runLedgerChecks(): Promise<LedgerCheck[]> {
  const folder = await mkdtemp(join(tmpdir(), 'chio-selftest-ledger-'))
  try {
    const fixture = fixtureIn(folder)
    return [
      await told('REPLAY', () => replays(fixture)),
      await told('REFUSE', () => refuses(fixture)),
      await told('UNKNOWN', () => staysUnknown(fixture)),
    ]
  } finally {
    await rm(folder, { force: true, recursive: true })
  }
}

type Proof = Pick<LedgerCheck, 'counts' | 'proved'>

async function told(name: LedgerCheckName, prove: () => Promise<Proof>): Promise<LedgerCheck> {
  try {
    return { name, ok: true, ...(await prove()) }
  } catch (error) {
    const found = error instanceof Error ? error.message : 'an unknown fault'
    return { counts: {}, name, ok: false, proved: `failed: ${found}` }
  }
}

async function replays(fixture: Fixture): Promise<Proof> {
  let callbacks = 0
  const path = join(fixture.folder, 'completed-executor.db')
  await provision(fixture, path)
  const reports: string[] = []
  for (let opened = 0; opened < 2; opened += 1) {
    const ledger = await open(fixture, path)
    const { digest } = await ledger.executeOnce(fixture.authorization, termsOf(fixture), () => {
      callbacks += 1
      return { output: { fixture_summary: 'A' }, realized_cost: null }
    })
    reports.push(digest)
  }
  expectEqual('callbacks', 1, callbacks)
  expectEqual('different reports', 1, new Set(reports).size)
  const proved = 'original signed report after reopen: one callback; identical report bytes'
  return { counts: { callbacks, reports: new Set(reports).size }, proved }
}

async function refuses(fixture: Fixture): Promise<Proof> {
  const path = join(fixture.folder, 'completed-executor.db')
  const { executor, options } = fixture
  const nextEpoch = { ...executor, key_epoch: executor.key_epoch + 1 }
  await expectRefusal('executor_mismatch', ExecutorLedger.open(path, nextEpoch, options))
  await expectRefusal('storage', provision(fixture, path))
  const { claims, reports } = await (await open(fixture, path)).counts()
  expectEqual('history', [1, 1], [claims, reports])
  const proved = 'changed executor epoch and replacement ledger: original history retained'
  return { counts: { claims, refusals: 2, reports }, proved }
}

async function staysUnknown(fixture: Fixture): Promise<Proof> {
  let callbacks = 0
  const path = join(fixture.folder, 'unknown-executor.db')
  await provision(fixture, path)
  const execute = async (act: () => never | { output: { unsafe_retry: boolean }; realized_cost: null }) => {
    const ledger = await open(fixture, path)
    return ledger.executeOnce(fixture.authorization, termsOf(fixture), () => {
      callbacks += 1
      return act()
    })
  }
  const lost = execute(() => {
    throw new CaseFailure('lost result after claim')
  })
  await expectRefusal('executor_outcome_unknown', lost)
  const again = execute(() => ({ output: { unsafe_retry: true }, realized_cost: null }))
  await expectRefusal('executor_outcome_unknown', again)
  expectEqual('callbacks', 1, callbacks)
  const { claims, reports } = await (await open(fixture, path)).counts()
  expectEqual('history', [1, 0], [claims, reports])
  const proved = 'claimed result after reopen: original custody; no second callback'
  return { counts: { callbacks, claims, reports }, proved }
}

const provision = ({ executor, executorKey: key, options }: Fixture, path: string) =>
  ExecutorLedger.provision(path, { capacity: CAPACITY, executor, key }, options)
const open = ({ executor, options }: Fixture, path: string) => ExecutorLedger.open(path, executor, options)

const termsOf = ({ authorization, executorKey, kernelKey }: Fixture) => ({
  invocation: authorization.authorization.invocation,
  kernelKey: kernelKey.publicKey,
  key: executorKey,
})

async function expectRefusal(code: ErrorCode, act: Promise<unknown>): Promise<void> {
  const got = await act.then(
    () => 'no refusal',
    (error: unknown) => (isBrokerError(error) ? error.code : String(error)),
  )
  expectEqual('refusal', code, got)
}

function fixtureIn(folder: string): Fixture {
  const [executorKey, kernelKey] = [signingKey(randomBytes(KEY_BYTES)), signingKey(randomBytes(KEY_BYTES))]
  const executor = { executor_id: 'publication-executor', key_epoch: 1, public_key: executorKey.publicKey }
  const authorization = authorizationOf(executor, kernelKey)
  const options = { bootId: bootIdentity(), clock: systemClock }
  return { authorization, executor, executorKey, folder, kernelKey, options }
}

/** From a second ago until in a minute. */
function authorizationOf(executor: CallerExecutor, kernelKey: SigningKey): CallerAuthorization {
  const now = systemClock.unixMs()
  const digestOf = (text: string): string => sha256Hex(Buffer.from(text))
  const operation_id = digestOf('reviewed-publication-fixture')
  const body = {
    committed: {
      budget_hold_id: 'hold-1',
      dispatch_commit: {
        committed_version: 9,
        coordinator_lease_epoch: 1,
        coordinator_lease_id: 'coordinator',
        provider_attempt: {
          attempt_id: 'attempt-1',
          operation_id,
          transport_id: callerTransportId('publication'),
          transport_key_epoch: executor.key_epoch,
        },
        store_fence: { lease_id: 'owner', owner_epoch: 1, store_uuid: 'authority' },
      },
      execution_nonce_id: 'nonce-1',
      frozen_context_digest: digestOf('context'),
    },
    executor,
    expires_at_unix_ms: now + 60_000,
    invocation: {
      capability_digest: digestOf('grant'),
      capability_id: 'publication-grant',
      operation_id,
      parameters_digest: digestOf('summary-A'),
      request_binding_hash: digestOf('request'),
      request_id: 'publication-1',
      server_id: 'publication',
      tool_name: 'publish',
    },
    kernel_public_key: kernelKey.publicKey,
    not_before_unix_ms: now - 1_000,
    schema: 'chio.caller-dispatch-authorization.v1',
  } as const
  return signCallerAuthorization(body, kernelKey)
}
