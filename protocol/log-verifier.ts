// Owns the verification of a whole log, entry by entry, against the checkpoints over it: every signature, the order and
// completeness of every batch, the chain of the checkpoints. Must never hold more than one batch at a time, or call
// complete what no checkpoint covers.
// Source: RFC 6962 section 2.1; the checkpoint's predecessor rule and chain root.
import { assertFollows, type Checkpoint, chainLeafHash, verifyCheckpoint } from './checkpoint.js'
import { BrokerError } from './errors.js'
import { type KernelReceipt, receiptEntry } from './kernel-receipt.js'
import type { PublicKey } from './keys.js'
import { chainRootOf } from './log-proof.js'
import { logHashText } from './log-hash.js'
import { type Frontier, grownFrontier, leafHash, rootOfFrontier } from './merkle.js'
import type { Verified } from './verified.js'

/**
 * Verifies that checkpoints follow each other from the first on, and that each one's chain root is that of all before it.
 * @throws BrokerError `log_refused` naming the checkpoint.
 */
export function verifyCheckpointChain(
  checkpoints: readonly Checkpoint[],
  pinned: PublicKey,
): Verified<Checkpoint>[] {
  let chain: Frontier = []
  const verified: Verified<Checkpoint>[] = []
  for (const [index, given] of checkpoints.entries()) {
    const checkpoint = verifyCheckpoint(given, pinned)
    assertFollows(checkpoint, verified.at(-1))
    chain = grownFrontier(chain, index, chainLeafHash(checkpoint.body))
    if (chainRootOf(checkpoint) !== logHashText(rootOfFrontier(chain))) {
      refuse(`checkpoint ${index + 1} chain_root`, 'the root over all checkpoints up to it')
    }
    verified.push(checkpoint)
  }
  return verified
}

/** Takes the entries of a log in their order, from the first. */
export class LogVerifier {
  readonly #checkpoints: readonly Verified<Checkpoint>[]
  #batch: Frontier = []
  #covering = 0
  #entries = 0

  constructor(checkpoints: readonly Verified<Checkpoint>[]) {
    this.#checkpoints = checkpoints
  }

  /** @throws BrokerError `log_refused` naming the batch that ends here and is not the one that was signed. */
  add(receipt: Verified<KernelReceipt>): void {
    const checkpoint = this.#checkpoints[this.#covering]
    this.#entries++
    if (checkpoint === undefined) return
    const { batch_end_seq: end, batch_start_seq: start, checkpoint_seq: seq, merkle_root } = checkpoint.body
    this.#batch = grownFrontier(this.#batch, this.#entries - start, leafHash(receiptEntry(receipt)))
    if (this.#entries < end) return
    if (logHashText(rootOfFrontier(this.#batch)) !== merkle_root) {
      refuse(`checkpoint ${seq}`, `entries ${start} to ${end} as they were signed, in their order`)
    }
    this.#batch = []
    this.#covering++
  }

  /**
   * @returns how many entries there were, and up to which one checkpoints cover them.
   * @throws BrokerError `log_refused` when entries are missing that a checkpoint covers.
   */
  end(): { readonly entries: number; readonly covered: number } {
    const open = this.#checkpoints[this.#covering]
    if (open !== undefined) {
      const { batch_end_seq: end, checkpoint_seq: seq } = open.body
      refuse(`checkpoint ${seq}`, `all entries up to ${end}`, `the last at ${this.#entries}`)
    }
    return { covered: this.#checkpoints.at(-1)?.body.batch_end_seq ?? 0, entries: this.#entries }
  }
}

function refuse(what: string, expected: string, got = 'others'): never {
  throw new BrokerError('log_refused', `${what} refused: expected ${expected}, got ${got}`)
}
