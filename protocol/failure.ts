// The broker's signed failure receipt: why an attempt ended and what is known of its dispatch.
// The truth tables refuse a receipt that claims more, or less, than its stage can know.
import { digest, encode, type Infer, identifier, literal, nullable, object, oneOf, text } from './codec.js'
import { UnixSeconds } from './unix-time.js'
import { sha256Hex } from './digest.js'
import { BrokerError } from './errors.js'
import type { PublicKey, SigningKey } from './keys.js'
import { signEnvelope, signerEnvelope, verifyEnvelope } from './signing.js'
import { markVerified, type Verified } from './verified.js'

export const FAILURE_SCHEMA = 'chio.broker-execution-failure-receipt.v1'
const DOMAIN = 'chio.broker-execution-failure-receipt-signature.v1'
const DIAGNOSTIC = /^chio\.[a-z0-9._-]{1,123}$/

export const FAILURE_STAGES = [
  'admission',
  'capture',
  'dispatch',
  'hold',
  'receipt_persistence',
  'response',
] as const
export type FailureStage = (typeof FAILURE_STAGES)[number]
export const FAILURE_OUTCOMES = ['denied', 'failed', 'reversed', 'unknown'] as const
export type FailureOutcome = (typeof FAILURE_OUTCOMES)[number]
export const DISPATCH_KNOWLEDGE = ['committed', 'not_committed', 'not_started', 'unknown'] as const
export type DispatchKnowledge = (typeof DISPATCH_KNOWLEDGE)[number]

const STAGE_KNOWS: Record<FailureStage, readonly DispatchKnowledge[]> = {
  admission: ['not_started'],
  hold: ['not_started', 'not_committed'],
  capture: ['not_committed', 'unknown'],
  dispatch: ['committed', 'unknown'],
  response: ['committed', 'unknown'],
  receipt_persistence: ['committed', 'unknown'],
}

const OUTCOME_KNOWS: Record<FailureOutcome, readonly DispatchKnowledge[]> = {
  denied: ['not_started', 'not_committed'],
  reversed: ['not_committed'],
  failed: ['not_started', 'not_committed', 'committed'],
  unknown: ['unknown'],
}

export const ExecutionFailureReceiptBody = object({
  attemptId: nullable(identifier()),
  brokerCapabilityId: nullable(identifier()),
  capabilityDigest: nullable(digest()),
  diagnosticCode: text({ minBytes: 6, maxBytes: 128 }),
  dispatchKnowledge: oneOf(...DISPATCH_KNOWLEDGE),
  holdId: nullable(identifier()),
  invocationId: nullable(identifier()),
  issuedAtUnixSeconds: UnixSeconds,
  outcome: oneOf(...FAILURE_OUTCOMES),
  parentCapabilityId: nullable(identifier()),
  receiptId: identifier(),
  requestDigest: digest(),
  schema: literal(FAILURE_SCHEMA),
  stage: oneOf(...FAILURE_STAGES),
})
export type ExecutionFailureReceiptBody = Infer<typeof ExecutionFailureReceiptBody>

export const SignedExecutionFailureReceipt = signerEnvelope(ExecutionFailureReceiptBody)
export type SignedExecutionFailureReceipt = Infer<typeof SignedExecutionFailureReceipt>

export const BrokerExecuteFailure = object({
  diagnosticCode: text({ minBytes: 6, maxBytes: 128 }),
  receipt: SignedExecutionFailureReceipt,
  receiptReference: identifier(),
})
export type BrokerExecuteFailure = Infer<typeof BrokerExecuteFailure>

/** Refuses a body whose bindings are partial or whose claims its stage cannot know. */
export function checkFailureBody(body: ExecutionFailureReceiptBody): void {
  const bindings = [
    body.attemptId,
    body.brokerCapabilityId,
    body.holdId,
    body.invocationId,
    body.parentCapabilityId,
  ]
  const bound = bindings.filter(binding => binding !== null).length
  if (bound !== 0 && bound !== bindings.length) refuse('bindings', 'all five attempt bindings or none')
  if (bound === 0 && body.dispatchKnowledge !== 'not_started') {
    refuse('dispatchKnowledge', 'not_started where no attempt is bound')
  }
  if (!DIAGNOSTIC.test(body.diagnosticCode)) refuse('diagnosticCode', 'chio.broker.<code>')
  if (!STAGE_KNOWS[body.stage].includes(body.dispatchKnowledge)) {
    refuse('dispatchKnowledge', `one of ${STAGE_KNOWS[body.stage].join(', ')} at stage ${body.stage}`)
  }
  if (!OUTCOME_KNOWS[body.outcome].includes(body.dispatchKnowledge)) {
    refuse(
      'dispatchKnowledge',
      `one of ${OUTCOME_KNOWS[body.outcome].join(', ')} for outcome ${body.outcome}`,
    )
  }
}

function refuse(member: string, expected: string): never {
  throw new BrokerError('invalid_request', `failure receipt ${member} refused: expected ${expected}`)
}

/** Signs a failure and wraps it as the execute answer. */
export function signFailure(body: ExecutionFailureReceiptBody, key: SigningKey): BrokerExecuteFailure {
  checkFailureBody(body)
  const receipt = { ...signEnvelope(DOMAIN, ExecutionFailureReceiptBody, body, key), signer: key.publicKey }
  return { diagnosticCode: body.diagnosticCode, receipt, receiptReference: failureReference(receipt) }
}

export function failureReference(receipt: SignedExecutionFailureReceipt): string {
  return `broker-failure-receipt-sha256-${sha256Hex(encode(SignedExecutionFailureReceipt, receipt))}`
}

/** The receipt id of the one terminal failure of an exact request. */
export function failureReceiptId(requestCanonicalDigest: string): string {
  return `broker-failure-terminal-${requestCanonicalDigest}`
}

/**
 * Verifies a failure in itself: truth tables, wrapper, signer pin, signature.
 * @throws BrokerError `invalid_request` or `authorization_denied`.
 */
export function verifyFailure(
  failure: BrokerExecuteFailure,
  signer: PublicKey,
): Verified<BrokerExecuteFailure> {
  const { receipt } = failure
  checkFailureBody(receipt.body)
  if (failure.diagnosticCode !== receipt.body.diagnosticCode) deny('diagnosticCode', "its receipt's code")
  if (failure.receiptReference !== failureReference(receipt)) deny('receiptReference', "its receipt's digest")
  if (receipt.signer !== signer) deny('signer', 'the pinned broker receipt key')
  if (!verifyEnvelope(DOMAIN, ExecutionFailureReceiptBody, receipt, signer)) {
    deny('signature', "the signer's signature over this body")
  }
  return markVerified(failure)
}

function deny(member: string, expected: string): never {
  throw new BrokerError('authorization_denied', `failure receipt ${member} refused: expected ${expected}`)
}
