// Owns what a library says of a receipt that it was given: each check by itself, and whether all of them hold.
// Must never say ok without a trusted signer: a signature under a key that the receipt itself names proves nothing.
// Source: the verification result of the receipt bindings; snake_case is the wire's.
import { checkKernelReceipt, type KernelReceipt } from './kernel-receipt.js'
import type { PublicKey } from './keys.js'

const RESULT_OF_VERDICT = {
  allow: 'Authorized',
  cancelled: 'Cancelled',
  deny: 'Denied',
  incomplete: 'Incomplete',
} as const

export interface ReceiptJudgement {
  readonly authorized: boolean
  readonly boundary_class: string
  readonly decision: keyof typeof RESULT_OF_VERDICT | null
  readonly ok: boolean
  readonly parameter_hash_valid: boolean
  readonly receipt_id_valid: boolean
  readonly receipt_kind: string
  readonly result: (typeof RESULT_OF_VERDICT)[keyof typeof RESULT_OF_VERDICT] | null
  readonly signature_valid: boolean
  readonly signer_key_hex: string
  readonly signer_trusted: boolean
  readonly trust_level: string
}

/**
 * @param trusted kernel keys that the caller pins; without one nothing is ok.
 * @returns `authorized` only where every check holds and the decision allows.
 */
export function judgeKernelReceipt(receipt: KernelReceipt, trusted: readonly PublicKey[]): ReceiptJudgement {
  const { idValid, parameterHashValid, signatureValid, signerTrusted } = checkKernelReceipt(receipt, trusted)
  const decision = receipt.decision?.verdict ?? null
  const ok = idValid && parameterHashValid && signatureValid && signerTrusted
  return {
    authorized: ok && decision === 'allow',
    boundary_class: receipt.boundary_class,
    decision,
    ok,
    parameter_hash_valid: parameterHashValid,
    receipt_id_valid: idValid,
    receipt_kind: receipt.receipt_kind,
    result: decision === null ? null : RESULT_OF_VERDICT[decision],
    signature_valid: signatureValid,
    signer_key_hex: receipt.kernel_key,
    signer_trusted: signerTrusted,
    trust_level: receipt.trust_level,
  }
}
