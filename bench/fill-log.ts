// Owns the log of a filled kernel store: an end of every copied operation in it, and one checkpoint that covers them all,
// so that the kernel finds a whole log and reads at its start no more of it than of a real one.
// Must never: sign with the kernel's key. The checkpoint is another key's, as after a change of keys, and covers as its batch
// the last entries alone.
import { CHECKPOINT_SCHEMA, chainLeafHash, Checkpoint, signCheckpoint } from '../protocol/checkpoint.js'
import { unixSeconds } from '../protocol/clock.js'
import { encode } from '../protocol/codec.js'
import type { SigningKey } from '../protocol/keys.js'
import { logHashText } from '../protocol/log-hash.js'
import { grownFrontier, merkleRoot } from '../protocol/merkle.js'
import { ReceiptReads } from '../kernel/sqlite/receipt-tables.js'
import { systemClock } from '../native/clock.js'
import type { Transaction } from '../store/transaction.js'
import { type CopiedTable, type CopyRange, copyRows, DOCUMENT_BYTES } from './row-copies.js'

const BATCH_ENTRIES = 100

/** Adds the ends of a range of copies behind the entries that are there. */
export function fillEnds(tx: Transaction, operation: string, range: CopyRange): void {
  const base = new ReceiptReads(tx).entries() - range.first
  const isWhole = `numbers.n >= ${range.total - BATCH_ENTRIES}`
  const ends: CopiedTable = {
    name: 'receipts',
    where: "stage = 'ended' AND operation_id = ?",
    key: operation,
    identifiers: ['receipt_id', 'operation_id'],
    begins: {
      entry_seq: `${base} + numbers.n + 1`,
      // Of the last batch the kernel reads whole documents.
      document: `CASE WHEN ${isWhole} THEN original.document ELSE substr(original.document, 1, ${DOCUMENT_BYTES}) END`,
    },
  }
  copyRows(tx, ends, range)
}

/** Covers everything, as one commit of the kernel that its signed head is behind. */
export function coverLog(tx: Transaction, key: SigningKey): void {
  const receipts = new ReceiptReads(tx)
  const end = receipts.entries()
  const start = end - BATCH_ENTRIES + 1
  const last = receipts.lastCheckpoint()
  const before = last?.checkpoint.body.checkpoint_seq ?? 0
  const batch = {
    batch_end_seq: end,
    batch_start_seq: start,
    checkpoint_seq: before + 1,
    merkle_root: logHashText(merkleRoot(receipts.leaves(start, end))),
  }
  const checkpoint = signCheckpoint(
    {
      ...batch,
      issued_at: unixSeconds(systemClock),
      kernel_key: key.publicKey,
      schema: CHECKPOINT_SCHEMA,
      tree_size: BATCH_ENTRIES,
    },
    key,
  )
  const chain = Buffer.concat(grownFrontier(last?.chain ?? [], before, chainLeafHash(batch)))
  tx.run(
    'INSERT INTO checkpoints VALUES (?, ?, ?, ?)',
    before + 1,
    end,
    chain,
    encode(Checkpoint, checkpoint),
  )
  tx.run('UPDATE kernel_state SET commit_index = commit_index + 1')
}
