// Owns an executor as tests need one: its key, its pin, and reports under authorizations, as it would sign them.
// Must never be reached from anything that ships.
import { randomUUID } from 'node:crypto'
import {
  type CallerAuthorization,
  type CallerExecutor,
  callerAuthorizationDigest,
} from '../../protocol/caller-authorization.js'
import { type CallerReport, type CallerReportBody, signCallerReport } from '../../protocol/caller-report.js'
import { type SigningKey, signingKey } from '../../protocol/keys.js'
import { seed } from './kernel.js'

export class TestExecutor {
  readonly key: SigningKey
  readonly pin: CallerExecutor

  constructor(executorId = 'executor-of-tests', keyEpoch = 1) {
    this.key = signingKey(seed())
    this.pin = { executor_id: executorId, key_epoch: keyEpoch, public_key: this.key.publicKey }
  }

  /** As a ledger would retain it: begun as soon as it may begin. */
  report(authorization: CallerAuthorization, changes: Partial<CallerReportBody> = {}): CallerReport {
    const { executor, not_before_unix_ms } = authorization.authorization
    const body = {
      authorization_digest: callerAuthorizationDigest(authorization),
      claim_id: randomUUID(),
      completed_at_unix_ms: not_before_unix_ms,
      execution_started_at_unix_ms: not_before_unix_ms,
      executor,
      output: { written: true },
      realized_cost: null,
      schema: 'chio.caller-delivery-report.v1' as const,
    }
    return signCallerReport({ ...body, ...changes }, this.key)
  }
}
