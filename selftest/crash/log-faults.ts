// Owns the check of the kernel's log after a death: every receipt verifies, none is missing or out of order, every
// checkpoint holds, and how an operation ended is said once and as the kernel's own record says it.
// Must never: judge by what the kernel says of its log; only by the log and the key that was pinned.
import type { KernelClient } from '../../client/kernel-client.js'
import type { Checkpoint } from '../../protocol/checkpoint.js'
import { isBrokerError } from '../../protocol/errors.js'
import { type KernelReceipt, verifyKernelReceipt } from '../../protocol/kernel-receipt.js'
import type { PublicKey } from '../../protocol/keys.js'
import { LogVerifier, verifyCheckpointChain } from '../../protocol/log-verifier.js'
import type { OperationEntry } from './records.js'

/** @returns what does not hold, one sentence each; nothing when all holds. */
export async function logFaults(
  kernel: KernelClient,
  pinned: PublicKey,
  entries: readonly OperationEntry[],
): Promise<string[]> {
  const receipts = await wholeLog(kernel)
  try {
    const verifier = new LogVerifier(verifyCheckpointChain(await allCheckpoints(kernel), pinned))
    for (const receipt of receipts) verifier.add(verifyKernelReceipt(receipt, pinned))
    verifier.end()
  } catch (error) {
    if (!isBrokerError(error)) throw error
    return [`the log does not hold: ${error.message}`]
  }
  return entries.flatMap(entry => endFaults(entry, receipts))
}

/** An operation that ended has one receipt that says so, and it names the same state. */
function endFaults(
  { isSettled, operationId, state }: OperationEntry,
  receipts: readonly KernelReceipt[],
): string[] {
  const states = receipts.flatMap(receipt => projectedState(receipt, operationId) ?? [])
  const ends = states.filter(said => ENDED.includes(said))
  if (!isSettled)
    return ends.length === 0 ? [] : [`operation ${operationId} is open, and its log says ${ends.join()}`]
  if (ends.length === 1 && ends[0] === state) return []
  return [`operation ${operationId} ended as ${state}, and its log says ${ends.join() || 'no end'}`]
}

const ENDED = [
  'completed',
  'compensated_before_dispatch',
  'denied_after_delivery',
  'not_accepted_after_dispatch_commit',
  'outcome_unknown_after_dispatch',
]

interface Said {
  readonly admission?: { readonly operation_id: string; readonly projected_state: string }
  readonly refusal?: unknown
}

/** A refusal says where the operation stands too, and ends nothing. */
function projectedState({ metadata }: KernelReceipt, operationId: string): string | undefined {
  const { admission, refusal } = metadata as unknown as Said
  return refusal === undefined && admission?.operation_id === operationId
    ? admission.projected_state
    : undefined
}

async function wholeLog(kernel: KernelClient): Promise<KernelReceipt[]> {
  const receipts: KernelReceipt[] = []
  for (;;) {
    const page = (await kernel.call('read_log', { afterSeq: receipts.length })).receipts
    if (page.length === 0) return receipts
    receipts.push(...page)
  }
}

async function allCheckpoints(kernel: KernelClient): Promise<Checkpoint[]> {
  const checkpoints: Checkpoint[] = []
  for (;;) {
    const page = (await kernel.call('read_checkpoints', { afterSeq: checkpoints.length })).checkpoints
    if (page.length === 0) return checkpoints
    checkpoints.push(...page)
  }
}
