// chio receipt verify: receipts that somebody holds in a file, verified offline with a pinned kernel key. Nothing is
// asked of a kernel, and no key that a receipt names is believed.
import { BrokerError, isBrokerError } from '../protocol/errors.js'
import { admitPublicKey, type PublicKey } from '../protocol/keys.js'
import {
  MAXIMUM_RECEIPT_COUNT,
  MAXIMUM_RECEIPT_INPUT_BYTES,
  MAXIMUM_RECEIPT_LINE_BYTES,
} from '../protocol/limits.js'
import { verifyReceiptLine } from '../protocol/receipt-line.js'
import { readLines, readSmallFile } from './line-file.js'
import { type CommonOptions, print } from './output.js'

const MAXIMUM_KEY_FILE_BYTES = 1_024

export interface VerifyOptions extends CommonOptions {
  readonly input: string
  readonly trustedKernelPubkey: string
}

/** Verifies every receipt of a file: signature, signer pin, action hash. The first that fails ends it. */
export function verifyReceipts(options: VerifyOptions): void {
  const pinned = readTrustedKey(options.trustedKernelPubkey)
  const count = countVerified(options.input, pinned)
  const document = {
    schema: 'chio.receipt.signatures.v1',
    receipts_verified: count,
    trusted_kernel_key: pinned,
    checks: ['signature', 'signer_pin', 'action_parameter_hash'],
  }
  print(options, document, [`Verified ${count} receipt signatures, signer pins and action hashes.`])
}

/** The kernel key that the caller pins: 64 hex digits in a file. @throws BrokerError `invalid_key`. */
export function readTrustedKey(path: string): PublicKey {
  const text = Buffer.from(readSmallFile(path, 'trusted kernel key', MAXIMUM_KEY_FILE_BYTES)).toString(
    'latin1',
  )
  try {
    return admitPublicKey(text.trim(), 'trusted kernel key')
  } catch (cause) {
    if (!isBrokerError(cause)) throw cause
    throw new BrokerError(cause.code, `invalid trusted kernel key: ${cause.message}`, { cause })
  }
}

function countVerified(path: string, pinned: PublicKey): number {
  let count = 0
  const bounds = {
    what: 'receipt input',
    maximumBytes: MAXIMUM_RECEIPT_INPUT_BYTES,
    maximumLineBytes: MAXIMUM_RECEIPT_LINE_BYTES,
  }
  for (const { bytes, number } of readLines(path, bounds)) {
    if (count >= MAXIMUM_RECEIPT_COUNT) {
      throw new BrokerError(
        'invalid_request',
        `receipt input refused: expected at most ${MAXIMUM_RECEIPT_COUNT} receipts, got more`,
      )
    }
    verifyReceiptLine(bytes, number, pinned)
    count += 1
  }
  if (count > 0) return count
  throw new BrokerError('invalid_request', 'receipt input refused: expected at least one receipt, got none')
}
