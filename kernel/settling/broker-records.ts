// Owns: the port through which the kernel reads what the broker recorded, and releases what was never sent.
// Must never: prepare or dispatch anything. Whoever fills it verifies what the broker signs; the kernel does too.
// Source: the broker's replay-only `execute`, `release_attempt` and `attempt_status`.
import type { BrokerExecuteRequest } from '../../protocol/execute-request.js'
import type { BrokerExecuteResponse } from '../../protocol/execute-response.js'
import type { BrokerRecord } from '../../protocol/kernel-rpc.js'
import type { AttemptRegistration, SignedRegisterAttemptAuthorization } from '../../protocol/registration.js'
import type { AttemptStatus } from '../../protocol/status.js'

/** An attempt as the kernel retained it. */
export interface RetainedAttempt {
  readonly registration: AttemptRegistration
  readonly request: BrokerExecuteRequest
}

/**
 * `unknown`: the broker holds no such attempt. `refused`: it was reached, and one of the two does not accept what the
 * other said: the broker our signature, or we its record. `unreachable`: nothing at all was learned.
 */
export type Unanswered = 'refused' | 'unknown' | 'unreachable'

export interface BrokerRecords {
  /** The recorded outcome; `pending` while the attempt is registered and nothing ended it. */
  replay(attempt: RetainedAttempt, deadlineBootNs: bigint): Promise<BrokerRecord | 'pending' | Unanswered>
  /** The recorded response with its output, for guards; everything else has no output. */
  output(
    attempt: RetainedAttempt,
    deadlineBootNs: bigint,
  ): Promise<BrokerExecuteResponse | 'none' | Unanswered>
  /** Ends an attempt that was not dispatched; `conflict` when it went further: read its outcome. */
  release(
    attempt: RetainedAttempt,
    authorization: SignedRegisterAttemptAuthorization,
    deadlineBootNs: bigint,
  ): Promise<'released' | 'conflict' | Unanswered>
  attemptStatus(attemptId: string, deadlineBootNs: bigint): Promise<AttemptStatus | Unanswered>
  /** Whether the broker answers at all; asks about nothing in particular. */
  isReachable(deadlineBootNs: bigint): Promise<boolean>
}
