// Owns: the order in which a tool call is judged: issuer, signature and time of its token, revocation of it and its
// ancestors, delegation, subject, grant with constraints, proof of possession, target, snapshot, budget, approvals, guards.
// Must never: ask a later check before an earlier one, let a guard that fails allow, or keep a hold of a call that it denies.
// Source: the order of checks of a `ToolCallRequest` in the kernel.
import {
  type CapabilityToken,
  type TokenPins,
  verifyCapabilityToken,
} from '../../protocol/capability-token.js'
import { admitDelegation, assertTokenUnrevoked, type SnapshotOf } from '../../protocol/delegation.js'
import type { ConstraintType } from '../../protocol/constraint.js'
import type { InvocationContext } from '../../protocol/invocation-context.js'
import type { GuardEvidence } from '../../protocol/kernel-receipt.js'
import { type ChosenGrant, coveringGrants } from '../../protocol/scope.js'
import type { ToolCallRequest } from '../../protocol/tool-call.js'
import type { Verified } from '../../protocol/verified.js'
import { callRefusal, type CallRefusal, isRefusal, judged } from './call-refusal.js'

/** One call as it is judged: who asks is known from the connection, never from the request. */
export interface JudgedCall {
  readonly request: ToolCallRequest
  /** Key of the connected agent. */
  readonly agentId: string
  readonly context: InvocationContext
  readonly nowUnixSeconds: number
}

/** A check that an embedding registers. Guards are asked in their order; the first that does not allow ends the call. */
export interface CallGuard {
  readonly name: string
  /** @returns null to allow, or the reason to deny. A throw denies too. */
  judge(call: JudgedCall, grant: ChosenGrant): string | null
}

/** What the checks rest on. Everything is read at one moment: inside the transaction that the verdict enters. */
export interface CallAuthority {
  readonly pins: TokenPins & { readonly trustRootScopeHash?: string }
  readonly isRevoked: (capabilityId: string) => boolean
  readonly snapshotOf: SnapshotOf
  /** Constraints that are kept in another way than by the arguments. */
  readonly keptOtherwise: readonly ConstraintType[]
  /** What the agent's proof says; null where none is asked for, or it holds. */
  judgePossession(
    call: JudgedCall,
    token: CapabilityToken,
    covering: readonly ChosenGrant[],
  ): CallRefusal | null
  isTarget(serverId: string, toolName: string): boolean
  /** Keeps the token for tokens that are delegated from it. @returns false when its id names another token here. */
  remember(token: Verified<CapabilityToken>): boolean
  /** Takes one of the grants, the most exact first, while it has budget. */
  takeBudget(token: Verified<CapabilityToken>, covering: readonly ChosenGrant[]): ChosenGrant | CallRefusal
  /** Gives back what `takeBudget` took. */
  giveBudgetBack(): void
  /** What approvals say; null where none is asked for or all are given. */
  judgeApprovals(call: JudgedCall, grant: ChosenGrant): CallRefusal | null
  readonly guards: readonly CallGuard[]
}

export interface CallAllowed {
  readonly verdict: 'allow'
  readonly token: Verified<CapabilityToken>
  readonly grant: ChosenGrant
  readonly evidence: readonly GuardEvidence[]
}

export type CallEvaluation = CallAllowed | (CallRefusal & { readonly evidence: readonly GuardEvidence[] })

/** @returns the grant under which a call is allowed, or the first check that refuses it. */
export function evaluateCall(call: JudgedCall, authority: CallAuthority): CallEvaluation {
  const token = judgeToken(call, authority)
  if (isRefusal(token)) return { ...token, evidence: [] }
  const covering = judgeScope(call, authority, token)
  if (isRefusal(covering)) return { ...covering, evidence: [] }
  const grant = authority.takeBudget(token, covering)
  if (isRefusal(grant)) return { ...grant, evidence: [] }
  const evidence: GuardEvidence[] = []
  const refusal = authority.judgeApprovals(call, grant) ?? askGuards(call, authority, { evidence, grant })
  if (refusal === null) return { evidence, grant, token, verdict: 'allow' }
  authority.giveBudgetBack()
  return { ...refusal, evidence }
}

/** Issuer, signature, time; then whether the token still stands, by itself and by its chain. */
function judgeToken(
  { nowUnixSeconds, request }: JudgedCall,
  { isRevoked, pins, snapshotOf }: CallAuthority,
): Verified<CapabilityToken> | CallRefusal {
  const token = judged('token', () => verifyCapabilityToken(request.capability_token, pins, nowUnixSeconds))
  if (isRefusal(token)) return token
  const standing = judged('revocation', () => assertTokenUnrevoked(token, isRevoked))
  if (isRefusal(standing)) return standing
  return judged('delegation', () => admitDelegation(token, snapshotOf, pins))
}

/** Whose token it is, what it covers, and whether there is such a tool here. */
function judgeScope(
  call: JudgedCall,
  authority: CallAuthority,
  token: Verified<CapabilityToken>,
): readonly ChosenGrant[] | CallRefusal {
  const { agentId, request } = call
  const { params: parameters, server_id: serverId, tool: toolName } = request
  if (token.subject !== agentId) {
    return deny('subject', 'subject refused: expected the key of the agent that asks, got another')
  }
  const covering = coveringGrants(token.scope, { parameters, serverId, toolName }, authority.keptOtherwise)
  if (covering.length === 0) {
    return deny(
      'grant',
      `call refused: expected a grant to invoke ${toolName} on ${serverId} with these arguments, got none`,
    )
  }
  const unproved = authority.judgePossession(call, token, covering)
  if (unproved !== null) return unproved
  if (!authority.isTarget(serverId, toolName)) {
    return deny(
      'target',
      `call refused: expected a tool that is registered here, got ${toolName} on ${serverId}`,
    )
  }
  if (!authority.remember(token)) {
    return deny(
      'snapshot',
      `capability ${token.id} refused: expected the token that this id was first used for, got another`,
    )
  }
  return covering
}

function askGuards(
  call: JudgedCall,
  { guards }: CallAuthority,
  { evidence, grant }: { readonly evidence: GuardEvidence[]; readonly grant: ChosenGrant },
): CallRefusal | null {
  for (const guard of guards) {
    const reason = reasonOf(guard, call, grant)
    evidence.push({
      guard_name: guard.name,
      verdict: reason === null,
      ...(reason !== null && { details: reason }),
    })
    if (reason !== null) return callRefusal('guard', 'guard_denied', reason, guard.name)
  }
  return null
}

/** A guard that fails has not allowed anything. */
function reasonOf(guard: CallGuard, call: JudgedCall, grant: ChosenGrant): string | null {
  try {
    return guard.judge(call, grant)
  } catch (error) {
    const said = error instanceof Error ? error.message : 'no error'
    return `guard "${guard.name}" error (fail-closed): ${said}`
  }
}

function deny(check: CallRefusal['check'], reason: string): CallRefusal {
  return callRefusal(check, 'capability_denied', reason)
}
