// Owns: the interface of the kernel's log: read in pages, sealed by a checkpoint, added to by refusals.
// Must never: show how a store does it. Source: the receipt log of the kernel protocol.
import type { Checkpoint } from '../../protocol/checkpoint.js'
import type { KernelReceipt } from '../../protocol/kernel-receipt.js'
import type { SealedLog } from '../../protocol/receipt-rpc.js'
import type { Refusal } from './decision-receipt.js'
import type { LoggedReceipt } from '../sqlite/receipt-tables.js'

export interface ReceiptStore {
  find(receiptId: string): Promise<LoggedReceipt | undefined>
  /** How an operation ended, or else the newest decision about it. */
  newestOf(operationId: string): Promise<LoggedReceipt | undefined>
  /** The receipt of the decision that answered an operation's request. */
  answerOf(operationId: string): Promise<KernelReceipt | undefined>
  /** The receipt of an operation's one start; null before it. */
  startOf(operationId: string): Promise<KernelReceipt | null>
  /** Which receipt says how an operation ended. */
  endIdOf(operationId: string): Promise<string | null>
  /** Entries after one, at most so many, in their order. */
  page(afterSeq: number, limit: number): Promise<readonly LoggedReceipt[]>
  checkpoints(afterSeq: number, limit: number): Promise<readonly Checkpoint[]>
  /** The checkpoint over an entry, with the hashes of its batch. */
  coverOf(entrySeq: number): Promise<{ checkpoint: Checkpoint; leaves: Uint8Array[] } | undefined>
  /** One commit: the receipt of a refusal that changed nothing else. */
  refused(refusal: Refusal): Promise<KernelReceipt>
  /** Covers all entries up to now; without a commit where they are covered already. */
  seal(): Promise<SealedLog>
}
