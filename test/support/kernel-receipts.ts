// Owns receipts of a kernel with a fixed key, as the kernel's own functions sign them, and checkpoints over them.
// Must never hold a real secret.
import {
  type Checkpoint,
  CHECKPOINT_SCHEMA,
  chainLeafHash,
  checkpointDigest,
  signCheckpoint,
} from '../../protocol/checkpoint.js'
import { encode } from '../../protocol/codec.js'
import {
  KernelReceipt,
  type KernelReceiptBody,
  MEDIATED,
  NO_CONTENT_HASH,
  receiptEntry,
  signKernelReceipt,
  valueHash,
} from '../../protocol/kernel-receipt.js'
import { logHashText } from '../../protocol/log-hash.js'
import { leafHash, merkleRoot } from '../../protocol/merkle.js'
import { NOW, OWN_KEYS, seeded, TENANT } from './own-request.js'

export const LOG_KEY = seeded(17)
export const STRANGERS_KEY = OWN_KEYS.stranger

export function receiptBody(change: Partial<KernelReceiptBody> = {}): KernelReceiptBody {
  const parameters = { grant_id: 'grant-own', request_digest: 'ab'.repeat(32) }
  return {
    ...MEDIATED,
    action: { parameter_hash: valueHash(parameters), parameters },
    capability_id: 'grant-own',
    content_hash: NO_CONTENT_HASH,
    decision: { verdict: 'allow' },
    kernel_key: LOG_KEY.publicKey,
    policy_hash: 'cd'.repeat(32),
    tenant_id: TENANT,
    timestamp: NOW,
    tool_name: 'execute',
    tool_server: 'chio-broker',
    ...change,
  }
}

/** As many receipts as asked, no two alike. */
export function receiptsOf(count: number, key = LOG_KEY): KernelReceipt[] {
  const body = receiptBody({ kernel_key: key.publicKey })
  return Array.from({ length: count }, (_, index) => signKernelReceipt(body, key, `rcpt-${index + 1}`))
}

/** Checkpoints over batches of so many receipts each; what is left over is not covered. */
export function checkpointsOver(receipts: readonly KernelReceipt[], batch: number): Checkpoint[] {
  const leaves = receipts.map(receipt => leafHash(receiptEntry(receipt)))
  const checkpoints: Checkpoint[] = []
  for (let end = batch; end <= leaves.length; end += batch) {
    checkpoints.push(nextCheckpoint(checkpoints, leaves.slice(end - batch, end)))
  }
  return checkpoints
}

export function nextCheckpoint(
  before: readonly Checkpoint[],
  leaves: readonly Uint8Array[],
  key = LOG_KEY,
): Checkpoint {
  const previous = before.at(-1)?.body
  const start = (previous?.batch_end_seq ?? 0) + 1
  const leaf = {
    batch_end_seq: start + leaves.length - 1,
    batch_start_seq: start,
    checkpoint_seq: before.length + 1,
    merkle_root: logHashText(merkleRoot(leaves)),
  }
  const chain = [...before.map(({ body }) => chainLeafHash(body)), chainLeafHash(leaf)]
  const body = {
    ...leaf,
    chain_root: logHashText(merkleRoot(chain)),
    issued_at: NOW,
    kernel_key: key.publicKey,
    schema: CHECKPOINT_SCHEMA,
    tree_size: leaves.length,
  } as const
  return signCheckpoint(
    previous === undefined ? body : { ...body, previous_checkpoint_sha256: checkpointDigest(previous) },
    key,
  )
}

/** A receipt as one line of a file. */
export function receiptLine(receipt: KernelReceipt): string {
  return Buffer.from(encode(KernelReceipt, receipt)).toString('utf8')
}
