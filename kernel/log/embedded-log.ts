// Owns: the kernel's log as everything above the store sees it: read in pages, sealed by a checkpoint, added to by
// refusals. Decisions that move an operation write their receipts in their own commits.
// Must never: hold SQL, or write outside a fenced commit. Source: the receipt log of the kernel protocol.
import type { Checkpoint } from '../../protocol/checkpoint.js'
import type { KernelReceipt } from '../../protocol/kernel-receipt.js'
import type { SealedLog } from '../../protocol/receipt-rpc.js'
import type { Refusal } from './decision-receipt.js'
import { logRefusal, sealLog } from './receipt-log.js'
import type { ReceiptStore } from './receipt-store.js'
import type { SqliteMove } from '../sqlite/move.js'
import type { LoggedReceipt, ReceiptReads } from '../sqlite/receipt-tables.js'

export type Commit = <T>(name: string, body: (move: SqliteMove) => T) => Promise<T>

export class EmbeddedLog implements ReceiptStore {
  readonly #reads: ReceiptReads
  readonly #commit: Commit

  constructor(reads: ReceiptReads, commit: Commit) {
    this.#reads = reads
    this.#commit = commit
  }

  async find(receiptId: string): Promise<LoggedReceipt | undefined> {
    return this.#reads.find(receiptId)
  }

  /** How an operation ended, or else the newest decision about it. */
  async newestOf(operationId: string): Promise<LoggedReceipt | undefined> {
    return this.#reads.newestOf(operationId)
  }

  /** What its reserve is answered with: how the operation ended, or else that it was reserved. */
  async answerOf(operationId: string): Promise<KernelReceipt | undefined> {
    return this.#reads.answerOf(operationId)?.receipt
  }

  /** The receipt of an operation's one start; null before it. */
  async startOf(operationId: string): Promise<KernelReceipt | null> {
    return this.#reads.ofStage(operationId, 'started')?.receipt ?? null
  }

  /** Which receipt says how an operation ended. */
  async endIdOf(operationId: string): Promise<string | null> {
    return this.#reads.endIdOf(operationId)
  }

  async page(afterSeq: number, limit: number): Promise<readonly LoggedReceipt[]> {
    return this.#reads.page(afterSeq, limit)
  }

  async checkpoints(afterSeq: number, limit: number): Promise<readonly Checkpoint[]> {
    return this.#reads.checkpoints(afterSeq, limit)
  }

  /** The checkpoint over an entry, with the hashes of its batch. */
  async coverOf(entrySeq: number): Promise<{ checkpoint: Checkpoint; leaves: Uint8Array[] } | undefined> {
    const checkpoint = this.#reads.checkpointOver(entrySeq)
    if (checkpoint === undefined) return undefined
    const { batch_end_seq, batch_start_seq } = checkpoint.body
    return { checkpoint, leaves: this.#reads.leaves(batch_start_seq, batch_end_seq) }
  }

  /** One commit: the receipt of a refusal that changed nothing else. */
  refused(refusal: Refusal): Promise<KernelReceipt> {
    return this.#commit('refusal_recorded', move => logRefusal(move, refusal))
  }

  /** Covers all entries up to now; without a commit where they are covered already. */
  async seal(): Promise<SealedLog> {
    const entries = this.#reads.entries()
    if (this.#reads.covered() < entries) await this.#commit('log_sealed', sealLog)
    const last = this.#reads.lastCheckpoint()?.checkpoint.body
    return { checkpoints: last?.checkpoint_seq ?? 0, entries: last?.batch_end_seq ?? 0 }
  }
}
