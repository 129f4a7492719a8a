// Owns proofs about the kernel's log: that a receipt stands in a batch, and that a later checkpoint's log continues an
// earlier one's. Must never answer "consistent" where a chain root is missing: without one it is an error.
// Source: MerkleProof and ReceiptInclusionProof of the receipt log; `chio.checkpoint_consistency_proof.v2`.
import { array, digest, type Infer, identifier, integer, literal, object } from './codec.js'
import { type Checkpoint, chainLeafHash, checkpointDigest, logIdOf } from './checkpoint.js'
import { BrokerError } from './errors.js'
import { type KernelReceipt, receiptEntry } from './kernel-receipt.js'
import { MAXIMUM_AUDIT_PATH_COUNT, MAXIMUM_INTEGER } from './limits.js'
import { logHash, logHashBytes, logHashText } from './log-hash.js'
import { auditPath, consistencyPath, isConsistent, leafHash, merkleRoot, rootOfPath } from './merkle.js'
import type { Verified } from './verified.js'

export const CONSISTENCY_PROOF_SCHEMA = 'chio.checkpoint_consistency_proof.v2'

const sequence = integer({ min: 1, max: MAXIMUM_INTEGER })
const path = array(logHash(), { max: MAXIMUM_AUDIT_PATH_COUNT })

/** Siblings from the leaf upward. */
export const MerkleProof = object({
  audit_path: path,
  leaf_index: integer({ min: 0, max: MAXIMUM_INTEGER }),
  tree_size: sequence,
})
export type MerkleProof = Infer<typeof MerkleProof>

export const ReceiptInclusionProof = object({
  checkpoint_seq: sequence,
  leaf_index: integer({ min: 0, max: MAXIMUM_INTEGER }),
  merkle_root: logHash(),
  proof: MerkleProof,
  receipt_seq: sequence,
})
export type ReceiptInclusionProof = Infer<typeof ReceiptInclusionProof>

export const ConsistencyProof = object({
  appended_entry_end_seq: sequence,
  appended_entry_start_seq: sequence,
  chain_proof_hashes: path,
  from_chain_root: logHash(),
  from_checkpoint_seq: sequence,
  from_checkpoint_sha256: digest(),
  from_leaf_inclusion: MerkleProof,
  from_log_tree_size: sequence,
  log_id: identifier(),
  schema: literal(CONSISTENCY_PROOF_SCHEMA),
  to_chain_root: logHash(),
  to_checkpoint_seq: sequence,
  to_checkpoint_sha256: digest(),
  to_leaf_inclusion: MerkleProof,
  to_log_tree_size: sequence,
})
export type ConsistencyProof = Infer<typeof ConsistencyProof>

export function merkleProof(leaves: readonly Uint8Array[], index: number): MerkleProof {
  return {
    audit_path: auditPath(leaves, index).map(logHashText),
    leaf_index: index,
    tree_size: leaves.length,
  }
}

/** @throws BrokerError `log_refused` when siblings are missing or left over. */
function rootOf(leaf: Uint8Array, { audit_path, leaf_index: index, tree_size: size }: MerkleProof): string {
  return logHashText(rootOfPath({ leaf, index, size }, audit_path.map(logHashBytes)))
}

/** @param leaves of the whole batch that the checkpoint covers, in their order. */
export function proveInclusion(
  { body }: Checkpoint,
  leaves: readonly Uint8Array[],
  receiptSeq: number,
): ReceiptInclusionProof {
  const index = receiptSeq - body.batch_start_seq
  const proof = merkleProof(leaves, index)
  return {
    checkpoint_seq: body.checkpoint_seq,
    leaf_index: index,
    merkle_root: body.merkle_root,
    proof,
    receipt_seq: receiptSeq,
  }
}

/** @throws BrokerError `log_refused` unless this receipt stands in this checkpoint's batch at this place. */
export function verifyInclusion(
  proof: ReceiptInclusionProof,
  receipt: KernelReceipt,
  { body }: Verified<Checkpoint>,
): void {
  const what = `receipt ${proof.receipt_seq}`
  expectSame(what, 'checkpoint_seq', proof.checkpoint_seq, body.checkpoint_seq)
  expectSame(what, 'tree_size', proof.proof.tree_size, body.tree_size)
  expectSame(what, 'leaf_index', proof.proof.leaf_index, proof.leaf_index)
  expectSame(what, 'place', proof.receipt_seq, body.batch_start_seq + proof.leaf_index)
  expectSame(what, 'merkle_root', proof.merkle_root, body.merkle_root)
  expectSame(what, 'inclusion', rootOf(leafHash(receiptEntry(receipt)), proof.proof), body.merkle_root)
}

/**
 * @param from a checkpoint, and `to` the one after it, both of this chain.
 * @param chainLeaves of all checkpoints up to `to`.
 */
export function proveConsistency(
  from: Checkpoint,
  to: Checkpoint,
  chainLeaves: readonly Uint8Array[],
): ConsistencyProof {
  const [first, second] = [from.body, to.body]
  const before = chainLeaves.slice(0, first.checkpoint_seq)
  return {
    ...endpoints(from, to),
    chain_proof_hashes: consistencyPath(chainLeaves, first.checkpoint_seq).map(logHashText),
    from_chain_root: logHashText(merkleRoot(before)),
    from_leaf_inclusion: merkleProof(before, first.checkpoint_seq - 1),
    to_chain_root: logHashText(merkleRoot(chainLeaves)),
    to_leaf_inclusion: merkleProof(chainLeaves, second.checkpoint_seq - 1),
  }
}

/** What a proof says of its two checkpoints, which both of them say themselves. */
function endpoints({ body: from }: Checkpoint, { body: to }: Checkpoint) {
  return {
    appended_entry_end_seq: to.batch_end_seq,
    appended_entry_start_seq: from.batch_end_seq + 1,
    from_checkpoint_seq: from.checkpoint_seq,
    from_checkpoint_sha256: checkpointDigest(from),
    from_log_tree_size: from.batch_end_seq,
    log_id: logIdOf(to.kernel_key),
    schema: CONSISTENCY_PROOF_SCHEMA,
    to_checkpoint_seq: to.checkpoint_seq,
    to_checkpoint_sha256: checkpointDigest(to),
    to_log_tree_size: to.batch_end_seq,
  } as const
}

/**
 * @throws BrokerError `log_refused` unless the log of `from` is the beginning of the log of `to`: the two are adjacent,
 * each is the last leaf of its own chain, and the second chain continues the first.
 */
export function verifyConsistency(
  proof: ConsistencyProof,
  from: Verified<Checkpoint>,
  to: Verified<Checkpoint>,
): void {
  const what = `checkpoint ${to.body.checkpoint_seq}`
  expectSame(what, 'predecessor', to.body.checkpoint_seq, from.body.checkpoint_seq + 1)
  for (const [member, value] of Object.entries(endpoints(from, to))) {
    expectSame(what, member, proof[member as keyof ConsistencyProof] as number | string, value)
  }
  expectSame(what, 'from_chain_root', proof.from_chain_root, chainRootOf(from))
  expectSame(what, 'to_chain_root', proof.to_chain_root, chainRootOf(to))
  assertLastLeaf(proof.from_leaf_inclusion, from)
  assertLastLeaf(proof.to_leaf_inclusion, to)
  const heads = [from, to].map(checkpoint => ({
    root: logHashBytes(chainRootOf(checkpoint)),
    size: checkpoint.body.checkpoint_seq,
  })) as [Head, Head]
  const isBeginning = isConsistent(...heads, proof.chain_proof_hashes.map(logHashBytes))
  expectSame(what, 'chain', isBeginning ? 'continues' : 'another', 'continues')
}

interface Head {
  readonly root: Uint8Array
  readonly size: number
}

/** @throws BrokerError `log_refused`: without a chain root nothing can be said of consistency. */
export function chainRootOf({ body }: Checkpoint): string {
  if (body.chain_root !== undefined) return body.chain_root
  throw new BrokerError(
    'log_refused',
    `checkpoint ${body.checkpoint_seq} refused: expected a chain root, got none; its log cannot be compared`,
  )
}

function assertLastLeaf(inclusion: MerkleProof, checkpoint: Verified<Checkpoint>): void {
  const { body } = checkpoint
  const what = `checkpoint ${body.checkpoint_seq}`
  expectSame(what, 'chain size', inclusion.tree_size, body.checkpoint_seq)
  expectSame(what, 'chain place', inclusion.leaf_index, body.checkpoint_seq - 1)
  expectSame(what, 'chain inclusion', rootOf(chainLeafHash(body), inclusion), chainRootOf(checkpoint))
}

function expectSame<T extends number | string>(what: string, member: string, got: T, expected: T): void {
  if (got === expected) return
  throw new BrokerError('log_refused', `${what} ${member} refused: expected ${expected}, got ${got}`)
}
