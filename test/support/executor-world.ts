// Owns an executor of tests: its ledger in a private folder of its own, its key and its kernel's, authorizations that this
// kernel signed, and a journal that counts its effects. Everything is a real file.
import { appendFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ExecutorLedger, type LedgerOptions } from '../../executor/ledger.js'
import type { ExecutorCallback } from '../../executor/execute-once.js'
import { bootIdentity, systemClock } from '../../native/clock.js'
import {
  type CallerAuthorization,
  type CallerAuthorizationBody,
  signCallerAuthorization,
} from '../../protocol/caller-authorization.js'
import type { VerifiedCallerReport } from '../../protocol/caller-report.js'
import { sha256Hex, toHex } from '../../protocol/digest.js'
import { authorizationBody } from './own-caller.js'
import { OWN_KEYS } from './own-request.js'

export const EXECUTOR_KEY = OWN_KEYS.caller
export const KERNEL_KEY = OWN_KEYS.authority
export const EXECUTOR = authorizationBody().executor
export const MACHINE_TIME = { bootId: bootIdentity(), clock: systemClock }
const MINUTE_MS = 60_000

/** An authorization for one operation, from a second ago until in a minute, unless said. */
export function authorizationOf(
  name: string,
  changed: Partial<CallerAuthorizationBody> = {},
): CallerAuthorization {
  const now = Date.now()
  const interval = { expires_at_unix_ms: now + MINUTE_MS, not_before_unix_ms: now - 1_000 }
  const body = authorizationBody(sha256Hex(Buffer.from(name)))
  return signCallerAuthorization({ ...body, ...interval, ...changed }, KERNEL_KEY)
}

export class ExecutorWorld {
  readonly folder: string
  readonly path: string
  readonly journal: string
  #ledger: ExecutorLedger | undefined

  private constructor() {
    this.folder = mkdtempSync(join(tmpdir(), 'chio-executor-'))
    this.path = join(this.folder, 'ledger.db')
    this.journal = join(this.folder, 'journal')
    appendFileSync(this.journal, '')
  }

  /** @param capacity of the first segment. */
  static async begin(capacity = 4, options: Partial<LedgerOptions> = {}): Promise<ExecutorWorld> {
    const world = new ExecutorWorld()
    world.#ledger = await world.provision(capacity, options)
    return world
  }

  provision(capacity = 4, options: Partial<LedgerOptions> = {}): Promise<ExecutorLedger> {
    const terms = { capacity, executor: EXECUTOR, key: EXECUTOR_KEY }
    return ExecutorLedger.provision(this.path, terms, { ...MACHINE_TIME, ...options })
  }

  open(options: Partial<LedgerOptions> = {}): Promise<ExecutorLedger> {
    return ExecutorLedger.open(this.path, EXECUTOR, { ...MACHINE_TIME, ...options })
  }

  /** Executes by the ledger that was provisioned, or by one that is opened for it; the effect is a line of the journal. */
  async execute(
    authorization: CallerAuthorization,
    options: Partial<LedgerOptions> = {},
    callback: ExecutorCallback = claim => this.append(claim),
  ): Promise<VerifiedCallerReport> {
    const isOwn = Object.keys(options).length === 0
    const ledger = isOwn && this.#ledger !== undefined ? this.#ledger : await this.open(options)
    return ledger.executeOnce(authorization, termsOf(authorization), callback)
  }

  /** Executes by this ledger. */
  executeBy(ledger: ExecutorLedger, authorization: CallerAuthorization): Promise<VerifiedCallerReport> {
    return ledger.executeOnce(authorization, termsOf(authorization), this.append)
  }

  readonly append: ExecutorCallback = ({ claimId, operationId }) => {
    appendFileSync(this.journal, `${operationId} ${claimId}\n`)
    return { output: { operationId }, realized_cost: null }
  }

  /** Every effect so far. */
  effects(): string[] {
    return readFileSync(this.journal, 'utf8').split('\n').slice(0, -1)
  }

  end(): void {
    rmSync(this.folder, { force: true, recursive: true })
  }
}

/** What an executor that expects exactly this call has in its own records. */
export function termsOf({ authorization }: CallerAuthorization) {
  return { invocation: authorization.invocation, kernelKey: KERNEL_KEY.publicKey, key: EXECUTOR_KEY }
}

/** The code of a refusal, or `none`. */
export async function codeOf(act: Promise<unknown>): Promise<string> {
  try {
    await act
    return 'none'
  } catch (error) {
    return (error as { code?: string }).code ?? String(error)
  }
}

export const hexOf = ({ bytes }: VerifiedCallerReport): string => toHex(bytes)
