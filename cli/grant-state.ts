// Whether a grant still permits a run, in the order in which the kernel asks: revoked, expired, spent.
import type { ErrorCode } from '../protocol/error-codes.js'
import type { GrantView } from '../protocol/kernel-rpc.js'

/** What ended a grant: the code of the kernel's refusal, and what is said of the grant. */
export interface GrantEnd {
  readonly code: Extract<ErrorCode, 'grant_exhausted' | 'grant_expired' | 'grant_revoked'>
  readonly word: 'expired' | 'held' | 'revoked' | 'spent'
  readonly reason: string
}

/** The first reason for which a run would be refused; null when there is none. */
export function grantEnd(view: GrantView, nowUnixSeconds: number): GrantEnd | null {
  const { executions, grant, held, revoked } = view
  const { expiresAtUnixSeconds, maximumExecutions } = grant
  if (revoked) return { code: 'grant_revoked', word: 'revoked', reason: 'was revoked' }
  if (expiresAtUnixSeconds <= nowUnixSeconds) {
    const at = new Date(expiresAtUnixSeconds * 1_000).toISOString()
    return { code: 'grant_expired', word: 'expired', reason: `expired at ${at}` }
  }
  if (executions >= maximumExecutions) {
    return {
      code: 'grant_exhausted',
      word: 'spent',
      reason: `is spent: ${executions} of ${maximumExecutions} executions are used`,
    }
  }
  if (executions + held < maximumExecutions) return null
  return {
    code: 'grant_exhausted',
    word: 'held',
    reason: `is held to its last execution: ${executions} used and ${held} held of ${maximumExecutions}`,
  }
}
