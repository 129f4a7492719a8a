// Owns the errors of the sidecar's client: what was refused, what is not known, and what recovery of it needs.
// Must never: invite a second attempt, or show what it carries: arguments and outputs are private, and loggers print
// every member that they find.
// Source: a lost start or report goes to original-operation recovery with its authorization and report.
import type { CallerAuthorization } from '../protocol/caller-authorization.js'
import type { CallerReport } from '../protocol/caller-report.js'
import { BrokerError } from '../protocol/errors.js'
import type { SignedExecutionNonce } from '../protocol/execution-nonce.js'

/** Which original operation it was, and all that was said of it. */
export interface CallerRecovery {
  readonly step: 'evaluate' | 'start' | 'report'
  readonly requestId: string
  readonly executionNonce: SignedExecutionNonce | null
  readonly authorization: CallerAuthorization | null
  readonly report: CallerReport | null
}

/** `reply_lost`: no whole reply came. `reply_refused`: one came that is none of this protocol. Nothing was sent twice. */
export class UnsettledReply extends BrokerError {
  /** Not enumerable: it is for whoever recovers, not for a log. */
  declare readonly recovery: CallerRecovery

  constructor(code: 'reply_lost' | 'reply_refused', sentence: string, recovery: CallerRecovery) {
    super(code, sentence, { outcome: 'unknown' })
    Object.defineProperty(this, 'recovery', { enumerable: false, value: recovery })
  }
}

/** A fixed refusal of the sidecar, by its own code. */
export class SidecarRefusal extends BrokerError {
  readonly status: number
  /** `chio_control_forbidden` for one. */
  readonly sidecarCode: string

  constructor(step: CallerRecovery['step'], status: number, sidecarCode: string) {
    // What the sidecar could not finish, and a 409, may rest on a commit of an earlier time.
    const outcome = status === 409 || status >= 500 ? 'unknown' : 'not_started'
    super(
      'sidecar_refused',
      `${step} refused by the sidecar: expected a reply, got ${status} ${sidecarCode}`,
      {
        outcome,
      },
    )
    this.status = status
    this.sidecarCode = sidecarCode
  }
}
