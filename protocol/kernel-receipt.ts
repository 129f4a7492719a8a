// The kernel's receipt of one decision, in its current form: the id is the digest of the body, and what is signed is
// the body with its id. It says what was decided and under whose key, and authorizes nothing. Must never be
// mistaken for the broker's execution receipt, or for the old form, whose free id is bound by no digest.
// Source: the ChioReceipt of the kernel protocol (`chio.receipt.v1`), members, defaults and hashes.
import {
  array,
  boolean,
  digest,
  encode,
  type Infer,
  json,
  literal,
  object,
  oneOf,
  publicKeyHex,
  refine,
  signatureHex,
  tagged,
  text,
} from './codec.js'
import { canonicalBytes } from './canonical.js'
import { sha256Hex, toHex } from './digest.js'
import { BrokerError, isBrokerError } from './errors.js'
import { isList, type JsonValue } from './json.js'
import { admitPublicKey, type PublicKey, type SigningKey, verifySignature } from './keys.js'
import { MAXIMUM_RECEIPT_LINE_BYTES, MAXIMUM_RECEIPT_TEXT_BYTES } from './limits.js'
import { UnixSeconds } from './unix-time.js'
import { markVerified, type Verified } from './verified.js'

const receiptText = () => text({ maxBytes: MAXIMUM_RECEIPT_TEXT_BYTES })
const anyJson = () => json({ maxBytes: MAXIMUM_RECEIPT_LINE_BYTES })

/** What absence means is said by absence: a null or an empty list in its place is another spelling. */
const present = refine(anyJson(), value => {
  if (value === null) misshapen('metadata', 'a value, or no such member', 'null')
})

/** Who refused: the kernel itself, or one of its guards by name. */
export const KERNEL_GUARD = 'kernel'

export const ReceiptDecision = tagged('verdict', {
  allow: object({}),
  cancelled: object({ reason: receiptText() }),
  deny: object({ guard: receiptText(), reason: receiptText() }),
  incomplete: object({ reason: receiptText() }),
})
export type ReceiptDecision = Infer<typeof ReceiptDecision>

export const ReceiptAction = object({ parameter_hash: digest(), parameters: anyJson() })
export type ReceiptAction = Infer<typeof ReceiptAction>

export const GuardEvidence = object(
  { guard_name: receiptText(), verdict: boolean() },
  { optional: { details: receiptText() } },
)
export type GuardEvidence = Infer<typeof GuardEvidence>

const MAXIMUM_EVIDENCE = 256
const bodyMembers = {
  action: ReceiptAction,
  boundary_class: oneOf('advisory_only', 'cannot_see', 'detect_only', 'prevent'),
  capability_id: receiptText(),
  content_hash: digest(),
  kernel_key: publicKeyHex(),
  policy_hash: receiptText(),
  receipt_kind: oneOf('advisory_evaluation', 'mediated_decision', 'trace_observation'),
  redaction_mode: oneOf('none', 'redacted', 'summary'),
  timestamp: UnixSeconds,
  tool_name: receiptText(),
  tool_origin: oneOf(
    'caller_executed',
    'chio_internal',
    'host_executed_provider_reported',
    'host_executed_unmediated',
  ),
  tool_server: receiptText(),
  trust_level: oneOf('advisory', 'mediated', 'verified'),
} as const
const optionalMembers = {
  actor_chain: array(anyJson(), { min: 1, max: MAXIMUM_EVIDENCE }),
  decision: ReceiptDecision,
  evidence: array(GuardEvidence, { min: 1, max: MAXIMUM_EVIDENCE }),
  metadata: present,
  observation_outcome: oneOf('dropped', 'evaluated', 'observed'),
  tenant_id: receiptText(),
} as const

/** How far a kind of receipt may be relied on; every other pair is refused, at signing and at reading. */
const TRUST_OF_KIND = {
  advisory_evaluation: 'advisory',
  mediated_decision: 'mediated',
  trace_observation: 'verified',
} as const

interface Semantics {
  readonly decision?: ReceiptDecision
  readonly receipt_kind: keyof typeof TRUST_OF_KIND
  readonly trust_level: string
}

function checkSemantics({ decision, receipt_kind: kind, trust_level: trust }: Semantics): void {
  if (trust !== TRUST_OF_KIND[kind]) misshapen('trust_level', `${TRUST_OF_KIND[kind]} for a ${kind}`, trust)
  if (decision === undefined && kind === 'mediated_decision')
    misshapen('decision', `one in a ${kind}`, 'none')
}

/** What the id is the digest of. */
export const KernelReceiptBody = refine(object(bodyMembers, { optional: optionalMembers }), checkSemantics)
export type KernelReceiptBody = Infer<typeof KernelReceiptBody>

export const KernelReceipt = refine(
  object(
    { ...bodyMembers, id: digest(), signature: signatureHex() },
    // A hint that nothing rests on: verification is ed25519 whatever it says, so it may say nothing else.
    { optional: { ...optionalMembers, algorithm: literal('ed25519') } },
  ),
  checkSemantics,
)
export type KernelReceipt = Infer<typeof KernelReceipt>

export function receiptIdOfBody(body: KernelReceiptBody): string {
  return sha256Hex(encode(KernelReceiptBody, body))
}

/** What is signed: the canonical `{"body":<body>,"id":"<id>"}`, around a body that is written once. */
function signingInput(bodyBytes: Uint8Array, id: string): Uint8Array {
  return Buffer.concat([Buffer.from('{"body":'), bodyBytes, Buffer.from(`,"id":"${id}"}`)])
}

/** SHA-256 of the canonical value: the parameter hash of an action, the content hash of a value. */
export function valueHash(value: JsonValue): string {
  return sha256Hex(canonicalBytes(value))
}

/** The content hash of a decision that has no output. */
export const NO_CONTENT_HASH = valueHash(null)

/** The body of a receipt: what its signature covers besides the id. */
export function receiptBodyOf(receipt: KernelReceipt): KernelReceiptBody {
  const { algorithm: _hint, id: _id, signature: _signature, ...body } = receipt
  return body
}

/** The defaults of a tool call that this kernel mediated. */
export const MEDIATED = {
  boundary_class: 'prevent',
  receipt_kind: 'mediated_decision',
  redaction_mode: 'none',
  tool_origin: 'caller_executed',
  trust_level: 'mediated',
} as const

/**
 * Signs a body with the kernel key that it names.
 * @param proposedId of whoever asks for the receipt; kept in the metadata, since the id is the body's digest.
 * @throws BrokerError `receipt_refused` for another key's body.
 */
export function signKernelReceipt(
  body: KernelReceiptBody,
  key: SigningKey,
  proposedId: string,
): KernelReceipt {
  if (body.kernel_key !== key.publicKey) refuse('kernel_key', 'the key that signs it', 'another')
  const named = proposedId === '' ? body : { ...body, metadata: withNonce(body.metadata, proposedId) }
  const bytes = encode(KernelReceiptBody, named)
  const id = sha256Hex(bytes)
  return { ...named, id, signature: toHex(key.sign(signingInput(bytes, id))) }
}

function withNonce(metadata: JsonValue | undefined, proposedId: string): JsonValue {
  return { ...keptMetadata(metadata), chio_receipt_signing_nonce: proposedId }
}

function keptMetadata(metadata: JsonValue | undefined): { readonly [member: string]: JsonValue } {
  if (metadata === undefined) return {}
  if (typeof metadata !== 'object' || metadata === null) return { original_metadata: metadata }
  return isList(metadata) ? { original_metadata: metadata } : metadata
}

/** Each check by itself, for whoever wants to know which one failed. */
export interface ReceiptChecks {
  readonly idValid: boolean
  readonly parameterHashValid: boolean
  /** Under the key that the receipt names, which proves nothing unless it is trusted too. */
  readonly signatureValid: boolean
  readonly signerTrusted: boolean
}

/** @param trusted the kernel keys that whoever verifies holds; none means that no receipt is trusted. */
export function checkKernelReceipt(receipt: KernelReceipt, trusted: readonly PublicKey[]): ReceiptChecks {
  const bytes = encode(KernelReceiptBody, receiptBodyOf(receipt))
  const { action, id, kernel_key: signer, signature } = receipt
  return {
    idValid: sha256Hex(bytes) === id,
    parameterHashValid: valueHash(action.parameters) === action.parameter_hash,
    signatureValid: isSignedBy(signer, signingInput(bytes, id), signature),
    signerTrusted: trusted.some(key => key === signer),
  }
}

/** A key that is not admitted signs nothing. */
function isSignedBy(signer: string, message: Uint8Array, signature: string): boolean {
  try {
    return verifySignature(admitPublicKey(signer, 'receipt kernel_key'), message, signature)
  } catch (error) {
    if (isBrokerError(error)) return false
    throw error
  }
}

/**
 * Verifies signer pin, id, signature and action hash. That the decision was carried out is not said by any of them.
 * @throws BrokerError `receipt_refused` naming the first check that fails.
 */
export function verifyKernelReceipt(receipt: KernelReceipt, pinned: PublicKey): Verified<KernelReceipt> {
  const checks = checkKernelReceipt(receipt, [pinned])
  if (!checks.signerTrusted) refuse('kernel_key', 'the pinned kernel key', 'another')
  if (!checks.idValid) refuse('id', 'the digest of its body', 'another')
  if (!checks.signatureValid) refuse('signature', "the pinned key's over body and id", 'another')
  if (!checks.parameterHashValid) refuse('parameter_hash', "the digest of the action's parameters", 'another')
  return markVerified(receipt)
}

/** The entry of a log: the whole signed receipt. */
export function receiptEntry(receipt: KernelReceipt): Uint8Array {
  return encode(KernelReceipt, receipt)
}

/** No receipt at all: refused where bytes are read, as the shape of every document is. */
function misshapen(member: string, expected: string, got: string): never {
  throw new BrokerError('invalid_request', `receipt ${member} refused: expected ${expected}, got ${got}`)
}

function refuse(member: string, expected: string, got: string): never {
  throw new BrokerError(
    'receipt_refused',
    `receipt ${member} refused: expected ${expected}, got ${got}; it is not to be relied on`,
  )
}
