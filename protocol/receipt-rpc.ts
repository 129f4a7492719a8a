// What the kernel's socket says of its log: one receipt with the proof that it stands there, pages of entries, the
// checkpoints over them. Receipts are signed documents of their own; nothing here adds to what they prove.
import { array, digest, type Infer, integer, nullable, object } from './codec.js'
import { Checkpoint } from './checkpoint.js'
import { KernelReceipt } from './kernel-receipt.js'
import { MAXIMUM_INTEGER } from './limits.js'
import { ReceiptInclusionProof } from './log-proof.js'
import { Count } from './unix-time.js'

/** Entries of one page: a page is one frame, and is written within one turn of the event loop. */
export const MAXIMUM_LOG_PAGE = 64
export const MAXIMUM_CHECKPOINT_PAGE = 256

const entrySeq = integer({ min: 1, max: MAXIMUM_INTEGER })

/** By its own id, or the newest decision about an operation: exactly one is set. */
export const ReceiptName = object({ operationId: nullable(digest()), receiptId: nullable(digest()) })
export type ReceiptName = Infer<typeof ReceiptName>

export const ReceiptCase = object({
  entrySeq,
  /** Null until a checkpoint covers the entry. */
  inclusion: nullable(object({ checkpoint: Checkpoint, proof: ReceiptInclusionProof })),
  receipt: KernelReceipt,
})
export type ReceiptCase = Infer<typeof ReceiptCase>

export const LogPageRequest = object({ afterSeq: Count })
export type LogPageRequest = Infer<typeof LogPageRequest>

/** Entries in their order, the first after `afterSeq`; none at the end of the log. */
export const LogPage = object({ receipts: array(KernelReceipt, { max: MAXIMUM_LOG_PAGE }) })
export type LogPage = Infer<typeof LogPage>

export const CheckpointPage = object({ checkpoints: array(Checkpoint, { max: MAXIMUM_CHECKPOINT_PAGE }) })
export type CheckpointPage = Infer<typeof CheckpointPage>

/** How many entries the log had when a checkpoint was made over all of them. */
export const SealedLog = object({ checkpoints: Count, entries: Count })
export type SealedLog = Infer<typeof SealedLog>
