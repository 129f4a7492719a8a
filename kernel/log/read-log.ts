// Owns: who may read the kernel's log, and what of it one question is answered with.
// Must never: show a caller another caller's receipt, or the whole log to anybody but root, the kernel's own user and
// peers without a caller key.
// Source: "a client may read only under its own caller key"; the receipt log's pages and proofs.
import { BrokerError } from '../../protocol/errors.js'
import type { KernelReceipt } from '../../protocol/kernel-receipt.js'
import { proveInclusion } from '../../protocol/log-proof.js'
import {
  type CheckpointPage,
  type LogPage,
  type LogPageRequest,
  MAXIMUM_CHECKPOINT_PAGE,
  MAXIMUM_LOG_PAGE,
  type ReceiptCase,
  type ReceiptName,
  type SealedLog,
} from '../../protocol/receipt-rpc.js'
import type { Caller, KernelContext } from '../kernel-context.js'
import type { LoggedReceipt } from '../sqlite/receipt-tables.js'

/** Entries with their parameters and sentences together: a page stays well inside of a frame. */
const MAXIMUM_PAGE_BYTES = 4 * 1024 * 1024

/** The receipt with which a reserve and a finalize are answered, the same one every time. */
export async function answerReceipt({ store }: KernelContext, operationId: string): Promise<KernelReceipt> {
  const receipt = await store.receipts.answerOf(operationId)
  if (receipt !== undefined) return receipt
  throw new BrokerError(
    'invariant',
    `operation ${operationId} refused: expected a receipt in the log, got none`,
  )
}

/** @throws BrokerError `receipt_unknown` for one that is not the caller's, too. */
export async function showReceipt(
  { store }: KernelContext,
  caller: Caller,
  name: ReceiptName,
): Promise<ReceiptCase> {
  const logged = await findNamed(store.receipts, name)
  if (logged === undefined || !isOwn(caller, logged)) {
    throw new BrokerError(
      'receipt_unknown',
      'receipt refused: expected one of yours in the log of this kernel, got none',
    )
  }
  const { entrySeq, receipt } = logged
  const cover = await store.receipts.coverOf(entrySeq)
  if (cover === undefined) return { entrySeq, inclusion: null, receipt }
  const { checkpoint, leaves } = cover
  return { entrySeq, inclusion: { checkpoint, proof: proveInclusion(checkpoint, leaves, entrySeq) }, receipt }
}

type Log = KernelContext['store']['receipts']

async function findNamed(
  log: Log,
  { operationId, receiptId }: ReceiptName,
): Promise<LoggedReceipt | undefined> {
  if (receiptId !== null && operationId === null) return log.find(receiptId)
  if (operationId !== null && receiptId === null) return log.newestOf(operationId)
  throw new BrokerError(
    'invalid_request',
    'receipt refused: expected either its id or an operation, got both or none',
  )
}

/** @throws BrokerError `authorization_denied`. */
export async function readLog(
  { store }: KernelContext,
  caller: Caller,
  { afterSeq }: LogPageRequest,
): Promise<LogPage> {
  assertAuditor(caller)
  const page = await store.receipts.page(afterSeq, MAXIMUM_LOG_PAGE)
  let bytes = 0
  const fits = ({ byteLength }: LoggedReceipt, index: number): boolean => {
    bytes += byteLength
    return index === 0 || bytes <= MAXIMUM_PAGE_BYTES
  }
  return { receipts: page.filter(fits).map(({ receipt }) => receipt) }
}

/** @throws BrokerError `authorization_denied`. */
export async function readCheckpoints(
  { store }: KernelContext,
  caller: Caller,
  { afterSeq }: LogPageRequest,
): Promise<CheckpointPage> {
  assertAuditor(caller)
  return { checkpoints: await store.receipts.checkpoints(afterSeq, MAXIMUM_CHECKPOINT_PAGE) }
}

/** Makes a checkpoint over everything so far, so that all of an export is proven. @throws as above. */
export async function sealLog({ store }: KernelContext, caller: Caller): Promise<SealedLog> {
  assertAuditor(caller)
  return store.receipts.seal()
}

/** The kernel's own user, and root, could read its store as well. */
function mayAudit({ callerPublicKey, uid }: Caller): boolean {
  return callerPublicKey === null || uid === 0 || uid === process.geteuid?.()
}

function assertAuditor(caller: Caller): void {
  if (mayAudit(caller)) return
  throw new BrokerError(
    'authorization_denied',
    "log refused: expected root, the kernel's own user or a peer without a caller key, got a client; your own receipts: chio receipt show",
  )
}

function isOwn(caller: Caller, { callerPublicKey }: LoggedReceipt): boolean {
  return mayAudit(caller) || callerPublicKey === caller.callerPublicKey
}
