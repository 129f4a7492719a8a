// Owns a kernel's store without its sockets: the real reserve and the real moves over a real file, a clock that a test
// moves, a crash at any named commit, and another opening afterwards. The broker's records are made by the test.
import { rmSync } from 'node:fs'
import { EmbeddedAdmissionStore } from '../../kernel/admission-moves.js'
import { issueGrant } from '../../kernel/administer-grants.js'
import type { KernelContext } from '../../kernel/kernel-context.js'
import { type AdmissionOperation, brokeredCall } from '../../kernel/operation/operation.js'
import { reserve } from '../../kernel/reserve.js'
import { kernelStorePath, provisionKernel } from '../../kernel/start-kernel.js'
import { openTables, type SqliteAdmissionTables } from '../../kernel/sqlite/tables.js'
import type { CallerExecutor } from '../../protocol/caller-authorization.js'
import { encode } from '../../protocol/codec.js'
import { type VerifiedNonce, verifyNonce } from '../../protocol/execution-nonce.js'
import { Grant } from '../../protocol/grant.js'
import type { BrokerRecord, ReserveRequest } from '../../protocol/kernel-rpc.js'
import { signingKey } from '../../protocol/keys.js'
import { buildRegistration } from '../../protocol/registration.js'
import { cutpointsOf } from '../../system/cutpoints.js'
import { APPROVERS } from './approvers.js'
import { announce, executeOf, failureOf, receiptOf, requestUnder } from './brokered-operation.js'
import { HeldClock } from './clock.js'
import {
  approve,
  grantFor,
  kernelConfig,
  makeKernelFolder,
  makeKernelKeys,
  seed,
  UNREACHABLE,
} from './kernel.js'

export type RecordName = 'committed' | 'not_started' | 'receipt' | 'unknown'
const FAILURES = {
  committed: { dispatchKnowledge: 'committed', outcome: 'failed', stage: 'dispatch' },
  not_started: { dispatchKnowledge: 'not_started', outcome: 'failed', stage: 'admission' },
  unknown: { dispatchKnowledge: 'unknown', outcome: 'unknown', stage: 'dispatch' },
} as const

/** Of the one grant, and of the nonces. */
export interface WorldBounds {
  readonly maximumExecutions: number
  readonly capacity: number
  readonly requiredApprovals: number
}

/** What a crash throws in the place of an end of the process: nothing of the open store is used afterwards. */
export class Crash extends Error {}

export class AdmissionWorld {
  readonly clock = new HeldClock(1_800_000_000_000)
  readonly people = {
    administrator: signingKey(seed()),
    broker: signingKey(seed()),
    caller: signingKey(seed()),
  }
  readonly keys = makeKernelKeys()
  readonly folder = makeKernelFolder()
  readonly config
  readonly grant: Grant
  /** The commit at which the next crash happens, as `NAME.before` or `NAME.after`. */
  crashAt: string | null = null
  #tables: SqliteAdmissionTables | undefined
  #store: EmbeddedAdmissionStore | undefined
  bootId = 'boot-1'
  /** To whom its openings deliver. */
  executor: CallerExecutor | null = null

  private constructor({ capacity, maximumExecutions, requiredApprovals }: WorldBounds) {
    const nonce = { capacity, ttlSeconds: 30 }
    this.config = kernelConfig(this.folder, { ...this.people, approvers: APPROVERS, nonce })
    const expiresAtUnixSeconds = 1_900_000_000
    const bounds = { expiresAtUnixSeconds, maximumExecutions, requiredApprovals }
    this.grant = grantFor(this.people, bounds, this.clock)
  }

  /** A provisioned and opened store with one grant. */
  static async make(bounds: Partial<WorldBounds> = {}): Promise<AdmissionWorld> {
    const world = new AdmissionWorld({ capacity: 4, maximumExecutions: 3, requiredApprovals: 0, ...bounds })
    await provisionKernel(world.config, world.clock)
    await world.open()
    const authorization = approve(world.people, 'issue_grant', encode(Grant, world.grant), world.clock)
    await issueGrant(world.context, authorization, world.grant)
    return world
  }

  get path(): string {
    return kernelStorePath(this.config)
  }

  get store(): EmbeddedAdmissionStore {
    if (this.#store === undefined) throw new TypeError('store: expected an open one, got a closed one')
    return this.#store
  }

  get tables(): SqliteAdmissionTables {
    if (this.#tables === undefined) throw new TypeError('tables: expected open ones, got closed ones')
    return this.#tables
  }

  get context(): KernelContext {
    return {
      clock: this.clock,
      config: this.config,
      keys: this.keys,
      log: () => {},
      records: UNREACHABLE,
      store: this.store,
    } as Partial<KernelContext> as KernelContext
  }

  /** Opens as the next owner and recovers what the last one left. */
  async open(): Promise<void> {
    const { issuer, kernel } = this.keys
    const { checkpointReceipts, durableMode, tenantScope } = this.config
    this.#tables = await openTables(this.path, {
      atCutpoint: cutpointsOf('kernel', name => {
        if (name !== `kernel.${this.crashAt}`) return
        this.crashAt = null
        throw new Crash(name)
      }),
      bootId: this.bootId,
      clock: this.clock,
      log: { checkpointReceipts, durableMode, issuerKey: issuer.publicKey, key: kernel, tenantScope },
    })
    this.#store = new EmbeddedAdmissionStore(this.#tables)
    await this.#store.recover(this.executor)
  }

  /** Ends this owner, cleanly or after a crash, and opens the next one. */
  async reopen(): Promise<void> {
    this.crashAt = null
    this.close()
    await this.open()
  }

  close(): void {
    this.#tables?.close()
    this.#tables = undefined
    this.#store = undefined
  }

  remove(): void {
    this.close()
    rmSync(this.folder, { recursive: true, force: true })
  }

  announcement(change: Partial<ReserveRequest> = {}): ReserveRequest {
    return { ...announce(this.people, this.grant, requestUnder(this.grant), this.clock), ...change }
  }

  reserve(request: ReserveRequest): Promise<AdmissionOperation> {
    const caller = { callerPublicKey: this.people.caller.publicKey, uid: 1 }
    return reserve(this.context, caller, request)
  }

  /** Retains the registration of an operation, as it was reserved. */
  retain(operation: AdmissionOperation): Promise<AdmissionOperation> {
    const { operationId } = operation
    const sealed = { ciphertext: new Uint8Array(16), nonce: new Uint8Array(12) }
    return this.store.retainRegistration({
      operationId,
      registration: this.#registered(operation).registration,
      sealed,
    })
  }

  /** Presents the nonce of one operation for another, past every check that is made before the store. */
  start(operation: AdmissionOperation, of: AdmissionOperation = operation): Promise<AdmissionOperation> {
    const nonce = { ...this.nonceOf(of), operationId: operation.operationId }
    return this.store.start({ issuer: this.keys.kernel.publicKey, nonce })
  }

  /** The nonce of an operation as it was verified when it was issued. */
  nonceOf(operation: AdmissionOperation): VerifiedNonce {
    const { executionNonce } = brokeredCall(operation).reservation.answer
    const { bound_to: boundTo, issued_at: nowUnixSeconds } = executionNonce.nonce
    const { operationId } = operation
    return verifyNonce(executionNonce, {
      boundTo,
      issuer: this.keys.kernel.publicKey,
      nowUnixSeconds,
      operationId,
    })
  }

  record(operation: AdmissionOperation, name: RecordName): BrokerRecord {
    const registered = this.#registered(operation)
    if (name !== 'receipt') return failureOf(this.people, registered, FAILURES[name])
    const captured = operation.commit?.captured ?? NOT_CAPTURED
    return receiptOf(this.people, { ...registered, captured })
  }

  #registered(operation: AdmissionOperation) {
    const { answer, request: announced } = brokeredCall(operation).reservation
    const execute = executeOf(this.people, announced, answer, requestUnder(this.grant))
    const { authorityMetadataDigest, operationId, quotas, revocationAuthorityDomain } = answer
    const digests = { authorityMetadataDigest, operationId, quotas, revocationAuthorityDomain }
    return { announced, answer, execute, operationId, registration: buildRegistration(execute, digests) }
  }
}

const NOT_CAPTURED = {
  authorityCommitIndex: 1,
  budgetCommitIndex: 1,
  checkedRevocationSetDigest: '00'.repeat(32),
  leaderEpoch: 1,
  revocationCommitIndex: 1,
}
