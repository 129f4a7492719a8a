// Owns a broker's records as a test scripts them: what a real broker cannot be made to answer on demand. Keeps
// every question in order.
import type { BrokerRecords, RetainedAttempt, Unanswered } from '../../kernel/settling/broker-records.js'
import type { BrokerExecuteResponse } from '../../protocol/execute-response.js'
import type { BrokerRecord } from '../../protocol/kernel-rpc.js'
import type { AttemptStatus } from '../../protocol/status.js'

type Replayed = BrokerRecord | 'pending' | Unanswered
type Released = 'released' | 'conflict' | Unanswered

export class ScriptedRecords implements BrokerRecords {
  readonly asked: string[] = []
  /** Answers in order; the last one stays. */
  statuses: (AttemptStatus | Unanswered)[] = ['unreachable']
  replays: Replayed[] = ['unreachable']
  outputs: (BrokerExecuteResponse | 'none' | Unanswered)[] = ['unreachable']
  releases: Released[] = ['unreachable']
  attempt: RetainedAttempt | undefined

  async attemptStatus(): Promise<AttemptStatus | Unanswered> {
    this.asked.push('status')
    return next(this.statuses)
  }

  async isReachable(): Promise<boolean> {
    this.asked.push('reachable')
    return this.statuses[0] !== 'unreachable'
  }

  async replay(attempt: RetainedAttempt): Promise<Replayed> {
    this.asked.push('replay')
    this.attempt = attempt
    return next(this.replays)
  }

  async output(attempt: RetainedAttempt): Promise<BrokerExecuteResponse | 'none' | Unanswered> {
    this.asked.push('output')
    this.attempt = attempt
    return next(this.outputs)
  }

  async release(attempt: RetainedAttempt): Promise<Released> {
    this.asked.push('release')
    this.attempt = attempt
    return next(this.releases)
  }
}

function next<T>(answers: T[]): T {
  return (answers.length > 1 ? answers.shift() : answers[0]) as T
}

/** An attempt as its broker describes it. */
export function statusOf(attemptId: string, given: Partial<AttemptStatus> = {}): AttemptStatus {
  return {
    attemptId,
    dispatchCommittedAtUnixMs: null,
    endedAtUnixMs: null,
    expectedFrameSha256: null,
    held: false,
    operationId: 'a'.repeat(64),
    parentCapabilityId: 'grant',
    reason: null,
    receiptReference: null,
    registeredAtUnixMs: 1,
    requestCanonicalDigest: 'b'.repeat(64),
    schema: 'chio.broker-attempt-status.v1',
    state: 'registered',
    submittedFrameBytes: null,
    submittedFrameSha256: null,
    ...given,
  }
}
