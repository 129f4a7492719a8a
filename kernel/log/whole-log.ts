// Owns: what a kernel looks at of its own log before it goes on: no number is missing, what the last checkpoint covers is
// what it covered, what follows it is signed, and every operation that ended has its receipt.
// Must never: repair anything. Going on behind a log that was cut would sign a second receipt under a number that an
// earlier one may be known by.
// Source: the append-only receipt log; RFC 6962 section 2.1. The batches before the last are chio audit verify's.
import { isTerminalState } from '../../protocol/admission-states.js'
import { verifyCheckpoint } from '../../protocol/checkpoint.js'
import { BrokerError } from '../../protocol/errors.js'
import { receiptEntry, verifyKernelReceipt } from '../../protocol/kernel-receipt.js'
import type { PublicKey } from '../../protocol/keys.js'
import { logHashText } from '../../protocol/log-hash.js'
import { leafHash, merkleRoot } from '../../protocol/merkle.js'
import type { SqliteMove } from '../sqlite/move.js'
import type { LoggedReceipt } from '../sqlite/receipt-tables.js'

/** @throws BrokerError `log_broken` with the first thing that does not hold. */
export function assertLogWhole(move: SqliteMove): void {
  if (move.log === null) return
  const { publicKey } = move.log.key
  const { ended, rows } = move.receipts.counts()
  const entries = move.receipts.entries()
  expectSame('entries up to the last number', entries, rows)
  expectSame('receipts of ended operations', endedOperations(move), ended)
  assertLastBatch(move, publicKey)
  const covered = move.receipts.covered()
  if (covered > entries) refuse(`at least the ${covered} entries of its last checkpoint, got ${entries}`)
  for (const logged of move.receipts.page(covered, entries - covered)) assertOwn(logged, publicKey)
}

function endedOperations({ operations }: SqliteMove): number {
  const counts = operations.stateCounts()
  const sum = (isCounted: (state: (typeof counts)[number]['state']) => boolean) =>
    counts.reduce((total, { count, state }) => total + (isCounted(state) ? count : 0), 0)
  expectSame(
    'operations that were counted',
    sum(() => true),
    operations.count(),
  )
  return sum(isTerminalState)
}

function assertLastBatch({ receipts }: SqliteMove, kernelKey: PublicKey): void {
  const checkpoint = receipts.lastCheckpoint()?.checkpoint
  if (checkpoint === undefined) return
  const { batch_end_seq, batch_start_seq, kernel_key, merkle_root, tree_size } = checkpoint.body
  if (kernel_key === kernelKey) verifyCheckpoint(checkpoint, kernelKey)
  const batch = receipts.page(batch_start_seq - 1, tree_size)
  expectSame('entries of the last checkpoint', tree_size, batch.length)
  const root = merkleRoot(batch.map(({ receipt }) => leafHash(receiptEntry(receipt))))
  if (logHashText(root) === merkle_root) return
  refuse(`entries ${batch_start_seq} to ${batch_end_seq} as their checkpoint has them, got others`)
}

/** What no checkpoint covers yet is known by its signature. A kernel that got another key knows its own alone. */
function assertOwn({ entrySeq, receipt }: LoggedReceipt, kernelKey: PublicKey): void {
  if (receipt.kernel_key !== kernelKey) return
  try {
    verifyKernelReceipt(receipt, kernelKey)
  } catch (cause) {
    refuse(`entry ${entrySeq} with this kernel's signature, got one without`, cause)
  }
}

function expectSame(what: string, expected: number, got: number): void {
  if (expected !== got) refuse(`${expected} ${what}, got ${got}`)
}

function refuse(expected: string, cause?: unknown): never {
  const next =
    'its store was changed by another program: put the newest whole copy back, or export what is left'
  throw new BrokerError('log_broken', `receipt log refused: expected ${expected}; ${next}`, {
    cause,
    outcome: 'not_started',
  })
}
