// Owns the comparison of an export with what was known of its log before: a checkpoint that somebody kept, or an earlier
// export. Must never take a log for a continuation because it is longer: it is proven step by step, or refused.
// Source: `chio.checkpoint_consistency_proof.v2`: pairs of adjacent checkpoints.
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { Checkpoint, chainLeafHash, checkpointDigest, verifyCheckpoint } from '../protocol/checkpoint.js'
import { decode } from '../protocol/codec.js'
import { BrokerError } from '../protocol/errors.js'
import { CHECKPOINTS_FILE } from '../protocol/export-manifest.js'
import type { PublicKey } from '../protocol/keys.js'
import { MAXIMUM_INTEGER } from '../protocol/limits.js'
import { type ConsistencyProof, proveConsistency, verifyConsistency } from '../protocol/log-proof.js'
import { verifyCheckpointChain } from '../protocol/log-verifier.js'
import type { Verified } from '../protocol/verified.js'
import { readLines } from './line-file.js'

const MAXIMUM_CHECKPOINT_LINE_BYTES = 4_096

export interface Consistency {
  readonly from: Verified<Checkpoint>
  /** One for each checkpoint after it. */
  readonly proofs: readonly ConsistencyProof[]
}

/** The checkpoints of a file, one a line. */
export function* checkpointLines(
  path: string,
  onBytes: (chunk: Uint8Array) => void = () => undefined,
  what = CHECKPOINTS_FILE,
): Generator<Checkpoint> {
  const maximumLineBytes = MAXIMUM_CHECKPOINT_LINE_BYTES
  for (const { bytes, number } of readLines(path, {
    maximumBytes: MAXIMUM_INTEGER,
    maximumLineBytes,
    onBytes,
    what,
  })) {
    yield decode(Checkpoint, bytes, `${what} line ${number}`)
  }
}

/**
 * @param path of an earlier export, whose last checkpoint counts, or of a file with one checkpoint.
 * @throws BrokerError `log_refused` for one that the pinned key did not sign, `usage` where there is none.
 */
export function readEarlierCheckpoint(path: string, pinned: PublicKey): Verified<Checkpoint> {
  if (!isFolder(path)) {
    const [only, ...more] = checkpointLines(path, undefined, '--from')
    if (only === undefined || more.length > 0)
      return refuse('--from', 'a file of one checkpoint', 'another number')
    return verifyCheckpoint(only, pinned)
  }
  const last = verifyCheckpointChain([...checkpointLines(join(path, CHECKPOINTS_FILE))], pinned).at(-1)
  return last ?? refuse('--from', 'an export with a checkpoint', 'one without')
}

/**
 * Proves that the log of an earlier checkpoint is the beginning of this one, and verifies each proof.
 * @param checkpoints of the whole log, verified as a chain.
 * @throws BrokerError `log_refused` for a shorter log and for another one.
 */
export function provenFrom(
  from: Verified<Checkpoint>,
  checkpoints: readonly Verified<Checkpoint>[],
): Consistency {
  const { checkpoint_seq: seq } = from.body
  const same = checkpoints[seq - 1]
  if (same === undefined)
    refuse(`checkpoint ${seq}`, 'it in this export, as it was known before', 'a shorter log')
  if (checkpointDigest(same.body) !== checkpointDigest(from.body)) {
    refuse(`checkpoint ${seq}`, 'the one that was known before', 'another: this is a fork of the log')
  }
  const leaves = checkpoints.map(({ body }) => chainLeafHash(body))
  const proofs = checkpoints.slice(seq).map((to, step) => {
    const before = step === 0 ? from : (checkpoints[seq + step - 1] as Verified<Checkpoint>)
    const proof = proveConsistency(before, to, leaves.slice(0, seq + step + 1))
    verifyConsistency(proof, before, to)
    return proof
  })
  return { from, proofs }
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true
}

function refuse(what: string, expected: string, got: string): never {
  throw new BrokerError('log_refused', `${what} refused: expected ${expected}, got ${got}`)
}
