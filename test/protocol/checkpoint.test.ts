// Checkpoints: the order of their checks, who follows whom, and proofs between them and to their receipts.
import { describe, expect, test } from 'vitest'
import {
  assertFollows,
  Checkpoint,
  type CheckpointBody,
  chainLeafHash,
  checkpointDigest,
  logIdOf,
  signCheckpoint,
  verifyCheckpoint,
} from '../../protocol/checkpoint.js'
import { decode, encode } from '../../protocol/codec.js'
import { isBrokerError } from '../../protocol/errors.js'
import { type KernelReceipt, receiptEntry } from '../../protocol/kernel-receipt.js'
import {
  ConsistencyProof,
  MerkleProof,
  proveConsistency,
  proveInclusion,
  ReceiptInclusionProof,
  verifyConsistency,
  verifyInclusion,
} from '../../protocol/log-proof.js'
import { LogVerifier, verifyCheckpointChain } from '../../protocol/log-verifier.js'
import { leafHash } from '../../protocol/merkle.js'
import type { Verified } from '../../protocol/verified.js'
import { checkpointsOver, LOG_KEY, receiptsOf, STRANGERS_KEY } from '../support/kernel-receipts.js'
import { describeVectors, readVectors } from '../support/vectors.js'

const pinned = LOG_KEY.publicKey
const receipts = receiptsOf(11)
const leaves = receipts.map(receipt => leafHash(receiptEntry(receipt)))
const checkpoints = checkpointsOver(receipts, 3)
const [first, second, third] = checkpoints.map(checkpoint => verifyCheckpoint(checkpoint, pinned)) as [
  Verified<Checkpoint>,
  Verified<Checkpoint>,
  Verified<Checkpoint>,
]

function sentenceOf(action: () => unknown): string {
  try {
    action()
    return 'accepted'
  } catch (error) {
    return isBrokerError(error) ? error.message : String(error)
  }
}

/** Signed as its kernel would, whatever it claims. */
function resigned(change: Partial<CheckpointBody>, of: Checkpoint = second): Verified<Checkpoint> {
  return signCheckpoint({ ...of.body, ...change }, LOG_KEY) as Verified<Checkpoint>
}

describe('a checkpoint', () => {
  test('is read back, verified and named by digest and log', () => {
    expect(decode(Checkpoint, encode(Checkpoint, first), 'checkpoint')).toEqual(first)
    expect(checkpointDigest(first.body)).toBe(second.body.previous_checkpoint_sha256)
    expect(logIdOf(pinned)).toMatch(/^local-log-[0-9a-f]{64}$/)
  })

  test.each([
    [{ checkpoint_seq: 0 }, 'checkpoint_seq refused'],
    [{ batch_start_seq: 0 }, 'batch_start_seq refused'],
    [{ batch_end_seq: 1 }, 'batch_end_seq refused'],
    [{ tree_size: 0 }, 'tree_size refused'],
    [{ tree_size: 4 }, 'tree_size refused'],
    [{ merkle_root: `0x${'00'.repeat(32)}` }, 'signature refused'],
    [{ issued_at: 1 }, 'signature refused'],
  ])('with %j is refused', (change, expected) => {
    const spoiled = { ...second, body: { ...second.body, ...change } }
    expect(sentenceOf(() => verifyCheckpoint(spoiled, pinned))).toContain(`checkpoint`)
    expect(sentenceOf(() => verifyCheckpoint(spoiled, pinned))).toContain(expected)
  })

  test('of another key is refused, and no key signs for another', () => {
    expect(sentenceOf(() => verifyCheckpoint(first, STRANGERS_KEY.publicKey))).toContain('kernel_key refused')
    expect(sentenceOf(() => signCheckpoint(first.body, STRANGERS_KEY))).toContain('kernel_key refused')
  })

  test('of the first version, without a chain root, is no current one', () => {
    const text = Buffer.from(encode(Checkpoint, first)).toString('utf8')
    const old = text.replace('chio.checkpoint_statement.v2', 'chio.checkpoint_statement.v1')
    expect(sentenceOf(() => decode(Checkpoint, Buffer.from(old), 'checkpoint'))).toContain('schema')
  })
})

describe('following', () => {
  test('holds from the first checkpoint on', () => {
    expect(() => assertFollows(first, undefined)).not.toThrow()
    expect(() => assertFollows(second, first)).not.toThrow()
  })

  test.each([
    [{ checkpoint_seq: 3 }, 'checkpoint_seq refused'],
    [{ batch_start_seq: 5, batch_end_seq: 7 }, 'batch_start_seq refused'],
    [{ previous_checkpoint_sha256: '00'.repeat(32) }, 'previous_checkpoint_sha256 refused'],
  ])('is refused with %j', (change, expected) => {
    expect(sentenceOf(() => assertFollows(resigned(change), first))).toContain(expected)
  })

  test('is refused of a first one that does not begin with entry 1, or names one before it', () => {
    expect(sentenceOf(() => assertFollows(second, undefined))).toContain('checkpoint_seq refused')
    const named = resigned({ previous_checkpoint_sha256: '00'.repeat(32) }, first)
    expect(sentenceOf(() => assertFollows(named, undefined))).toContain('none in the first checkpoint')
  })
})

describe('an inclusion proof', () => {
  const receipt = receipts[4] as KernelReceipt
  const proof = proveInclusion(second, leaves.slice(3, 6), 5)

  test('holds for every receipt of its batch, and for no other', () => {
    for (const seq of [4, 5, 6]) {
      const own = proveInclusion(second, leaves.slice(3, 6), seq)
      expect(() => verifyInclusion(own, receipts[seq - 1] as KernelReceipt, second)).not.toThrow()
      expect(sentenceOf(() => verifyInclusion(own, receipts[seq] as KernelReceipt, second))).toContain(
        'inclusion refused',
      )
    }
  })

  test('is refused with any member changed', () => {
    const spoiled: ReceiptInclusionProof[] = [
      { ...proof, checkpoint_seq: 1 },
      { ...proof, leaf_index: 0 },
      { ...proof, receipt_seq: 4 },
      { ...proof, merkle_root: first.body.merkle_root },
      { ...proof, proof: { ...proof.proof, leaf_index: 2 } },
      { ...proof, proof: { ...proof.proof, tree_size: 4 } },
      { ...proof, proof: { ...proof.proof, audit_path: [] } },
      {
        ...proof,
        proof: { ...proof.proof, audit_path: [...proof.proof.audit_path, first.body.merkle_root] },
      },
    ]
    for (const one of spoiled)
      expect(sentenceOf(() => verifyInclusion(one, receipt, second))).toContain('refused')
    expect(sentenceOf(() => verifyInclusion(proof, receipt, third))).toContain('checkpoint_seq refused')
  })

  test('is a document of its own', () => {
    expect(decode(ReceiptInclusionProof, encode(ReceiptInclusionProof, proof), 'proof')).toEqual(proof)
  })
})

describeVectors('the schema of inclusion proofs', folder => {
  test('asks for the members that a proof has', () => {
    const schema = readVectors<{ required: string[]; properties: object }>(
      folder,
      'chio/schemas/chio-wire/v1/receipt/inclusion-proof.schema.json',
    )
    const { proof } = proveInclusion(second, leaves.slice(3, 6), 5)
    expect(Object.keys(proof).sort()).toEqual([...schema.required].sort())
    expect(decode(MerkleProof, encode(MerkleProof, proof), 'proof')).toEqual(proof)
  })
})

describe('a consistency proof', () => {
  const chain = checkpoints.map(({ body }) => chainLeafHash(body))
  const proof = proveConsistency(first, second, chain.slice(0, 2))

  test('holds between neighbours, and is a document of its own', () => {
    expect(() => verifyConsistency(proof, first, second)).not.toThrow()
    expect(() => verifyConsistency(proveConsistency(second, third, chain), second, third)).not.toThrow()
    expect(decode(ConsistencyProof, encode(ConsistencyProof, proof), 'proof')).toEqual(proof)
  })

  test('between checkpoints that are not neighbours is refused', () => {
    const far = proveConsistency(first, third, chain)
    expect(sentenceOf(() => verifyConsistency(far, first, third))).toContain('predecessor refused')
  })

  test('is refused with any member changed', () => {
    const bad = `0x${'00'.repeat(32)}`
    const spoiled: ConsistencyProof[] = [
      { ...proof, log_id: 'local-log-other' },
      { ...proof, appended_entry_start_seq: 3 },
      { ...proof, appended_entry_end_seq: 7 },
      { ...proof, from_checkpoint_sha256: '00'.repeat(32) },
      { ...proof, to_checkpoint_sha256: '00'.repeat(32) },
      { ...proof, from_chain_root: bad },
      { ...proof, to_chain_root: bad },
      { ...proof, chain_proof_hashes: [] },
      { ...proof, chain_proof_hashes: [bad] },
      { ...proof, from_leaf_inclusion: proof.to_leaf_inclusion },
      { ...proof, to_leaf_inclusion: proof.from_leaf_inclusion },
    ]
    for (const one of spoiled)
      expect(sentenceOf(() => verifyConsistency(one, first, second))).toContain('refused')
  })

  test('without a chain root is an error and never true', () => {
    const { chain_root: _none, ...body } = second.body
    const rootless = signCheckpoint(body, LOG_KEY) as Verified<Checkpoint>
    const forged = { ...proof, to_checkpoint_sha256: checkpointDigest(body) }
    expect(sentenceOf(() => verifyConsistency(forged, first, rootless))).toContain(
      'expected a chain root, got none',
    )
  })
})

describe('a whole log', () => {
  const chain = verifyCheckpointChain(checkpoints, pinned)
  const verifyAll = (entries: readonly KernelReceipt[], over = chain) => {
    const verifier = new LogVerifier(over)
    for (const receipt of entries) verifier.add(receipt as Verified<KernelReceipt>)
    return verifier.end()
  }

  test('verifies, and says how much of it checkpoints cover', () => {
    expect(verifyAll(receipts)).toEqual({ covered: 9, entries: 11 })
    expect(verifyAll([], [])).toEqual({ covered: 0, entries: 0 })
  })

  test('that is truncated is refused at the batch that is missing', () => {
    expect(sentenceOf(() => verifyAll(receipts.slice(0, 8)))).toBe(
      'checkpoint 3 refused: expected all entries up to 9, got the last at 8',
    )
  })

  test('that is reordered, or lacks an entry in the middle, is refused at its batch', () => {
    const swapped = [...receipts]
    swapped.splice(3, 2, receipts[4] as KernelReceipt, receipts[3] as KernelReceipt)
    const expected =
      'checkpoint 2 refused: expected entries 4 to 6 as they were signed, in their order, got others'
    expect(sentenceOf(() => verifyAll(swapped))).toBe(expected)
    expect(sentenceOf(() => verifyAll(receipts.filter((_, index) => index !== 4)))).toBe(expected)
  })

  test('whose checkpoints lack one, or stand in another order, is refused at that place', () => {
    const lacking = checkpoints.filter((_, index) => index !== 1)
    expect(sentenceOf(() => verifyCheckpointChain(lacking, pinned))).toContain(
      'checkpoint 3 checkpoint_seq refused',
    )
    const turned = [checkpoints[1], checkpoints[0], checkpoints[2]] as Checkpoint[]
    expect(sentenceOf(() => verifyCheckpointChain(turned, pinned))).toContain(
      'checkpoint 2 checkpoint_seq refused',
    )
  })

  test('whose chain root is that of another chain is refused, though the kernel signed it', () => {
    const forged = resigned({ chain_root: first.body.chain_root as string })
    expect(sentenceOf(() => verifyCheckpointChain([first, forged], pinned))).toContain(
      'checkpoint 2 chain_root',
    )
  })
})
