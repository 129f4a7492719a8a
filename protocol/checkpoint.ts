// Owns checkpoints of the kernel's log: a signed statement over one batch of entries and, by its chain root, over all
// batches before it. Must never be accepted because its signature is good: it must follow the checkpoint before it.
// Source: `chio.checkpoint_statement.v2`: order of its checks, predecessor rule, log id and chain leaf.
import { digest, encode, type Infer, integer, literal, object, publicKeyHex, signatureHex } from './codec.js'
import { fromHex, sha256Hex, toHex } from './digest.js'
import { BrokerError } from './errors.js'
import { type PublicKey, type SigningKey, verifySignature } from './keys.js'
import { MAXIMUM_INTEGER } from './limits.js'
import { logHash } from './log-hash.js'
import { leafHash } from './merkle.js'
import { UnixSeconds } from './unix-time.js'
import { markVerified, type Verified } from './verified.js'

export const CHECKPOINT_SCHEMA = 'chio.checkpoint_statement.v2'

const sequence = integer({ min: 0, max: MAXIMUM_INTEGER })

/** Which batch of the log a checkpoint covers, and the root over its entries. */
export const CheckpointBody = object(
  {
    batch_end_seq: sequence,
    batch_start_seq: sequence,
    checkpoint_seq: sequence,
    issued_at: UnixSeconds,
    kernel_key: publicKeyHex(),
    merkle_root: logHash(),
    schema: literal(CHECKPOINT_SCHEMA),
    tree_size: sequence,
  },
  { optional: { chain_root: logHash(), previous_checkpoint_sha256: digest() } },
)
export type CheckpointBody = Infer<typeof CheckpointBody>

export const Checkpoint = object({ body: CheckpointBody, signature: signatureHex() })
export type Checkpoint = Infer<typeof Checkpoint>

const ChainLeaf = object({
  batch_end_seq: sequence,
  batch_start_seq: sequence,
  checkpoint_seq: sequence,
  merkle_root: logHash(),
})

/** What the chain tree holds of a checkpoint. Time, key and signature are left out: they may be made anew. */
export function chainLeafHash(body: Infer<typeof ChainLeaf>): Uint8Array {
  const { batch_end_seq, batch_start_seq, checkpoint_seq, merkle_root } = body
  return leafHash(encode(ChainLeaf, { batch_end_seq, batch_start_seq, checkpoint_seq, merkle_root }))
}

export function checkpointDigest(body: CheckpointBody): string {
  return sha256Hex(encode(CheckpointBody, body))
}

/** The name of the log that a key writes. */
export function logIdOf(kernelKey: string): string {
  return `local-log-${sha256Hex(fromHex(kernelKey))}`
}

/** Signs a body with the kernel key that it names. @throws BrokerError `log_refused` for one that contradicts itself. */
export function signCheckpoint(body: CheckpointBody, key: SigningKey): Checkpoint {
  if (body.kernel_key !== key.publicKey) refuse(body, 'kernel_key', 'the key that signs it', 'another')
  checkBody(body)
  return { body, signature: toHex(key.sign(encode(CheckpointBody, body))) }
}

/**
 * Verifies a checkpoint by itself, in the protocol's order; the schema is the codec's.
 * @throws BrokerError `log_refused` naming the checkpoint and the first check that fails.
 */
export function verifyCheckpoint({ body, signature }: Checkpoint, pinned: PublicKey): Verified<Checkpoint> {
  checkBody(body)
  if (body.kernel_key !== pinned) refuse(body, 'kernel_key', 'the pinned kernel key', 'another')
  if (!verifySignature(pinned, encode(CheckpointBody, body), signature)) {
    refuse(body, 'signature', "the pinned key's over this body", 'another')
  }
  return markVerified({ body, signature })
}

function checkBody(body: CheckpointBody): void {
  const { batch_end_seq: end, batch_start_seq: start, checkpoint_seq, tree_size: size } = body
  if (checkpoint_seq < 1) refuse(body, 'checkpoint_seq', 'at least 1', checkpoint_seq)
  if (start < 1) refuse(body, 'batch_start_seq', 'at least 1', start)
  if (end < start) refuse(body, 'batch_end_seq', `at least its start ${start}`, end)
  if (size < 1) refuse(body, 'tree_size', 'at least 1', size)
  if (size !== end - start + 1) refuse(body, 'tree_size', `${end - start + 1} entries of its batch`, size)
}

/**
 * Whether a verified checkpoint is the next one. The first has no predecessor and begins with entry 1.
 * @throws BrokerError `log_refused` naming the checkpoint that does not follow.
 */
export function assertFollows(
  { body }: Verified<Checkpoint>,
  previous: Verified<Checkpoint> | undefined,
): void {
  const before = previous?.body
  const expectedSeq = (before?.checkpoint_seq ?? 0) + 1
  if (body.checkpoint_seq !== expectedSeq) {
    refuse(body, 'checkpoint_seq', `${expectedSeq}`, body.checkpoint_seq)
  }
  const expectedStart = (before?.batch_end_seq ?? 0) + 1
  if (body.batch_start_seq !== expectedStart) {
    refuse(body, 'batch_start_seq', `${expectedStart}`, body.batch_start_seq)
  }
  const named = body.previous_checkpoint_sha256
  if (named === undefined) return
  if (before === undefined) refuse(body, 'previous_checkpoint_sha256', 'none in the first checkpoint', 'one')
  if (named !== checkpointDigest(before)) {
    refuse(body, 'previous_checkpoint_sha256', 'the digest of the checkpoint before it', 'another')
  }
}

function refuse(body: CheckpointBody, member: string, expected: string, got: number | string): never {
  throw new BrokerError(
    'log_refused',
    `checkpoint ${body.checkpoint_seq} ${member} refused: expected ${expected}, got ${got}`,
  )
}
