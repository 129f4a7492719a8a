// Owns: the authority's answers to the broker: does the grant live, is anything revoked, is the hold captured.
// Must never: capture, reverse or change anything: it reads, and the broker decides.
// Source: the authority RPC (`chio.broker-authority-rpc.v1`): live parent, revocation, hold query.
import {
  AUTHORITY_PROFILE,
  type AuthorityAnswer,
  type AuthorityOperation,
  type AuthorityQuestion,
  type AuthorityResult,
  type HoldQuery,
  type LiveParent,
} from '../../protocol/authority-rpc.js'
import { unixSeconds } from '../../protocol/clock.js'
import { digest, encode, identifier, isSameDocument, object, publicKeyHex } from '../../protocol/codec.js'
import { domainDigestHex } from '../../protocol/digest.js'
import { ERROR_CODES } from '../../protocol/error-codes.js'
import { BrokerError, isBrokerError } from '../../protocol/errors.js'
import { type HoldState, revocationAuthorityDomain, revocationSetDigest } from '../../protocol/hold.js'
import { Quotas } from '../../protocol/registration.js'
import { Count } from '../../protocol/unix-time.js'
import { revocationIdsOf } from '../operation/dispatch-commit.js'
import { faultFields } from '../fault-fields.js'
import type { KernelContext } from '../kernel-context.js'
import { assertGrantLive } from '../liveness.js'
import { type AdmissionOperation, announcementOf, brokeredCall, isToolCall } from '../operation/operation.js'

type QueryOf<K extends AuthorityQuestion['kind']> = Extract<AuthorityQuestion, { kind: K }>['request']

/** Several questions are answered in their order, each as if it had been asked alone. */
export async function answerQuestion(
  context: KernelContext,
  operation: AuthorityOperation,
): Promise<AuthorityResult> {
  if (operation.kind === 'capabilities') return { kind: 'capabilities', response: CAPABILITIES }
  if (operation.kind !== 'questions') return answerOne(context, operation)
  const answers: AuthorityAnswer[] = []
  for (const question of operation.request.questions) answers.push(await answerOne(context, question))
  return { kind: 'answers', response: { answers } }
}

/** A refusal is an answer too: `rejected`, with the code that a peer may see. */
async function answerOne(context: KernelContext, question: AuthorityQuestion): Promise<AuthorityAnswer> {
  try {
    return await answer(context, question)
  } catch (error) {
    if (!isBrokerError(error)) throw error
    const code = ERROR_CODES[error.code].peerSees ?? 'authority_unavailable'
    context.log({ level: 'warn', event: 'question_rejected', kind: question.kind, ...faultFields(error) })
    return { kind: 'rejected', response: { code } }
  }
}

async function answer(context: KernelContext, question: AuthorityQuestion): Promise<AuthorityAnswer> {
  switch (question.kind) {
    case 'verify_live_parent':
      return { kind: 'live_parent', response: await liveParent(context, question.request) }
    case 'check_broker_revocation':
      return { kind: 'revocation', response: await revocation(context, question.request) }
    case 'query_execution_hold':
      return { kind: 'hold', response: await holdState(context, question.request) }
  }
}

/** One store, one commit: the hold, its quotas and the revocations cannot be seen apart. */
const CAPABILITIES = {
  atomicMultiKeyHolds: true,
  combinedCaptureAndRevocation: true,
  profile: AUTHORITY_PROFILE,
  queryById: true,
  sharedRevocationWriteDomain: true,
} as const

const AuthoritySnapshot = object({
  authority: publicKeyHex(),
  capabilityId: identifier(),
  commitIndex: Count,
  grantDigest: digest(),
})

async function liveParent(context: KernelContext, query: QueryOf<'verify_live_parent'>): Promise<LiveParent> {
  const stored = await context.store.findGrant(query.capabilityId)
  const now = unixSeconds(context.clock)
  assertGrantLive(stored, now)
  if (query.audience !== context.config.audience) deny('audience', 'the one of this kernel')
  if (query.subject !== stored.grant.callerPublicKey) deny('subject', 'the caller of the grant')
  const { commitIndex } = await context.store.readRevocation([])
  const snapshot = {
    authority: context.keys.authority.publicKey,
    capabilityId: query.capabilityId,
    commitIndex,
    grantDigest: stored.digest,
  }
  return {
    audience: query.audience,
    authoritySnapshotDigest: domainDigestHex(
      'chio.kernel-authority-snapshot.v1',
      encode(AuthoritySnapshot, snapshot),
    ),
    capabilityId: query.capabilityId,
    delegationAncestorIds: [],
    expiresAtUnixSeconds: stored.grant.expiresAtUnixSeconds,
    subject: query.subject,
    verifiedAtUnixSeconds: now,
  }
}

async function revocation(context: KernelContext, query: QueryOf<'check_broker_revocation'>) {
  const { commitIndex, revoked } = await context.store.readRevocation(query.revocationIds)
  return {
    authorityDomain: revocationAuthorityDomain(context.keys.authority.publicKey),
    commitIndex,
    observedAtUnixSeconds: unixSeconds(context.clock),
    revoked,
  }
}

/**
 * `captured` only while the operation stands in dispatch_committed. Once it has ended, however it ended, the hold
 * permits nothing more: an attempt that was registered late could otherwise still dispatch.
 */
async function holdState(context: KernelContext, query: HoldQuery): Promise<HoldState> {
  const operation = await context.store.findOperation(query.operationId)
  // The broker has no part in a tool call: what it asks of one, it asks of nothing that it can know.
  if (operation === undefined || isToolCall(operation.call)) return 'unknown'
  if (announcementOf(operation).ids.holdId !== query.holdId) return 'unknown'
  // Nothing was minted for what waits for approvals: nobody can ask for it in good faith.
  if (operation.call.kind === 'announced') return 'denied'
  if (!isSameHold(operation, query)) return 'denied'
  if (operation.state === 'compensated_before_dispatch') return 'reversed'
  if (operation.commit === null) return 'held'
  return operation.state === 'dispatch_committed' ? { captured: operation.commit.captured } : 'denied'
}

/** Quotas and revocation set are compared too: a capture stands for exactly what it was checked against. */
function isSameHold(operation: AdmissionOperation, query: HoldQuery): boolean {
  const { answer: reserved, ids } = brokeredCall(operation).reservation
  return (
    ids.captureEventId === query.captureEventId &&
    isSameDocument(Quotas, reserved.quotas, query.quotas) &&
    revocationSetDigest(query.revocationIds) === revocationSetDigest(revocationIdsOf(operation))
  )
}

function deny(member: string, expected: string): never {
  throw new BrokerError('authorization_denied', `live parent ${member} refused: expected ${expected}`)
}
