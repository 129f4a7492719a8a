// Owns the reading of one receipt that somebody holds as a line of text: strict JSON in any spelling, made canonical,
// read as the current form, and written back to the same bytes. Must never accept a member that the signature does
// not cover, or repeat what a line holds.
// Source: the steps of `receipt verify`: I-JSON, typed decode, equality with the canonical input.
import { canonicalBytes } from './canonical.js'
import { decode } from './codec.js'
import { BrokerError, isBrokerError } from './errors.js'
import { type JsonValue, parseStrictJson } from './json.js'
import { KernelReceipt, verifyKernelReceipt } from './kernel-receipt.js'
import type { PublicKey } from './keys.js'
import { MAXIMUM_RECEIPT_LINE_BYTES } from './limits.js'
import type { Verified } from './verified.js'

/**
 * @param line its number in the input, from 1: refusals name it.
 * @throws BrokerError `receipt_old_form`, `receipt_refused`.
 */
export function readReceiptLine(bytes: Uint8Array, line: number): KernelReceipt {
  if (bytes.length > MAXIMUM_RECEIPT_LINE_BYTES) {
    refuse(line, `expected at most ${MAXIMUM_RECEIPT_LINE_BYTES} bytes, got ${bytes.length}`)
  }
  const value = parseLine(bytes, line)
  if (isOldForm(value)) refuseOldForm(line)
  try {
    // Codecs write what they read: decoding is the comparison with the canonical input, too.
    return decode(KernelReceipt, canonicalBytes(value), 'receipt')
  } catch (cause) {
    if (!isBrokerError(cause)) throw cause
    return refuse(line, `receipt fields differ from the supported signed schema: ${cause.message}`, cause)
  }
}

/**
 * Reads a line and verifies signature, signer pin and action hash.
 * @throws BrokerError `receipt_old_form`, `receipt_refused` naming the line.
 */
export function verifyReceiptLine(
  bytes: Uint8Array,
  line: number,
  pinned: PublicKey,
): Verified<KernelReceipt> {
  const receipt = readReceiptLine(bytes, line)
  try {
    return verifyKernelReceipt(receipt, pinned)
  } catch (cause) {
    if (!isBrokerError(cause)) throw cause
    return refuse(line, cause.message, cause)
  }
}

function parseLine(bytes: Uint8Array, line: number): JsonValue {
  try {
    return parseStrictJson(bytes, 'receipt')
  } catch (cause) {
    if (!isBrokerError(cause)) throw cause
    return refuse(line, `non-I-JSON receipt at line ${line}: ${cause.message}`, cause)
  }
}

/** The form before ids were digests: a free id, and none of the members that say how far it may be relied on. */
function isOldForm(value: JsonValue): boolean {
  if (typeof value !== 'object' || value === null || !('id' in value)) return false
  return typeof value.id === 'string' && !/^[0-9a-f]{64}$/.test(value.id)
}

function refuseOldForm(line: number): never {
  throw new BrokerError(
    'receipt_old_form',
    `line ${line} refused: expected a receipt whose id is the digest of its body, got the old form with a free id`,
  )
}

function refuse(line: number, sentence: string, cause?: unknown): never {
  throw new BrokerError('receipt_refused', `line ${line} refused: ${sentence}`, { cause })
}
