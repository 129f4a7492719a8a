// Owns: the rows of the kernel's log: receipts in their order, and the checkpoints over them.
// Must never: change or lose an entry, leave a number out, or end an operation twice: the tables refuse it themselves.
// Source: the receipt log of the kernel protocol; RFC 6962 section 2.1 for the hashes of the leaves.
import { Checkpoint } from '../../protocol/checkpoint.js'
import { encode } from '../../protocol/codec.js'
import { KernelReceipt, receiptEntry } from '../../protocol/kernel-receipt.js'
import { type Frontier, HASH_BYTES, leafHash } from '../../protocol/merkle.js'
import { appendOnly } from '../../store/schema.js'
import type { Transaction } from '../../store/transaction.js'
import type { Moment } from './owner-table.js'
import { insertRow, readDocument, type Reader } from './row-documents.js'

const contiguous = (table: string, column: string): string =>
  `CREATE TRIGGER ${table}_contiguous BEFORE INSERT ON ${table}
  WHEN NEW.${column} <> (SELECT coalesce(max(${column}), 0) + 1 FROM ${table})
  BEGIN SELECT RAISE(ABORT, '${table} are numbered without a gap'); END;`

export const RECEIPT_SQL = `
CREATE TABLE receipts (entry_seq INTEGER PRIMARY KEY, receipt_id TEXT NOT NULL UNIQUE, operation_id TEXT,
  stage TEXT NOT NULL CHECK (stage IN ('reserved', 'started', 'ended', 'refused')), caller_public_key TEXT, leaf_hash BLOB NOT NULL CHECK (length(leaf_hash) = 32),
  document BLOB NOT NULL, recorded_at_unix_ms INTEGER NOT NULL) STRICT;
CREATE UNIQUE INDEX receipts_end_once ON receipts (operation_id) WHERE stage = 'ended';
CREATE INDEX receipts_of_operation ON receipts (operation_id, entry_seq) WHERE operation_id IS NOT NULL;
CREATE TABLE checkpoints (checkpoint_seq INTEGER PRIMARY KEY, batch_end_seq INTEGER NOT NULL,
  chain_frontier BLOB NOT NULL, document BLOB NOT NULL) STRICT;
${contiguous('receipts', 'entry_seq')}
${contiguous('checkpoints', 'checkpoint_seq')}
${appendOnly('receipts')}${appendOnly('checkpoints')}`

interface ReceiptRow {
  readonly entry_seq: number
  readonly operation_id: string | null
  readonly caller_public_key: string | null
  readonly document: Uint8Array
}

export interface LoggedReceipt {
  readonly entrySeq: number
  readonly operationId: string | null
  readonly callerPublicKey: string | null
  readonly receipt: KernelReceipt
  /** Of the canonical receipt. */
  readonly byteLength: number
}

export interface LastCheckpoint {
  readonly checkpoint: Checkpoint
  readonly chain: Frontier
}

/** What was decided: the reserve, the one start, the end, or that something is refused. */
export type ReceiptStage = 'ended' | 'refused' | 'reserved' | 'started'

/** Whose receipt it is, and of what. */
export interface ReceiptAbout {
  readonly operationId: string | null
  readonly callerPublicKey: string | null
  readonly stage: ReceiptStage
}

const RECEIPT = 'SELECT entry_seq, operation_id, caller_public_key, document FROM receipts'

export class ReceiptReads {
  readonly #reader: Reader

  constructor(reader: Reader) {
    this.#reader = reader
  }

  find(receiptId: string): LoggedReceipt | undefined {
    return optional(this.#reader.get<ReceiptRow>(`${RECEIPT} WHERE receipt_id = ?`, receiptId))
  }

  /** How an operation ended, or else the newest decision about it. */
  newestOf(operationId: string): LoggedReceipt | undefined {
    const newest = `${RECEIPT} WHERE operation_id = ? ORDER BY stage = 'ended' DESC, entry_seq DESC LIMIT 1`
    return optional(this.#reader.get<ReceiptRow>(newest, operationId))
  }

  ofStage(operationId: string, stage: ReceiptStage): LoggedReceipt | undefined {
    const first = `${RECEIPT} WHERE operation_id = ? AND stage = ? ORDER BY entry_seq LIMIT 1`
    return optional(this.#reader.get<ReceiptRow>(first, operationId, stage))
  }

  /** What a reserve is answered with: how the operation ended, or else that it was reserved. */
  answerOf(operationId: string): LoggedReceipt | undefined {
    return this.ofStage(operationId, 'ended') ?? this.ofStage(operationId, 'reserved')
  }

  endIdOf(operationId: string): string | null {
    const sql = 'SELECT receipt_id AS id FROM receipts WHERE operation_id = ? AND stage = ?'
    return this.#reader.get<{ id: string }>(sql, operationId, 'ended')?.id ?? null
  }

  /** Entries after one, at most so many, in their order. */
  page(afterSeq: number, limit: number): LoggedReceipt[] {
    const page = `${RECEIPT} WHERE entry_seq > ? ORDER BY entry_seq LIMIT ?`
    return this.#reader.all<ReceiptRow>(page, afterSeq, limit).map(loggedReceipt)
  }

  entries(): number {
    return this.#reader.get<{ n: number }>('SELECT coalesce(max(entry_seq), 0) AS n FROM receipts')?.n ?? 0
  }

  /** How many rows there are, and how many of them say how an operation ended. */
  counts(): { readonly ended: number; readonly rows: number } {
    const sql = `SELECT (SELECT count(*) FROM receipts WHERE stage = 'ended') AS ended, (SELECT count(*) FROM receipts) AS rows`
    return this.#reader.get(sql) as { ended: number; rows: number }
  }

  /** The last entry that a checkpoint covers, 0 for none. */
  covered(): number {
    const sql = 'SELECT batch_end_seq AS n FROM checkpoints ORDER BY checkpoint_seq DESC LIMIT 1'
    return this.#reader.get<{ n: number }>(sql)?.n ?? 0
  }

  checkpoints(afterSeq: number, limit: number): Checkpoint[] {
    const sql = 'SELECT document FROM checkpoints WHERE checkpoint_seq > ? ORDER BY checkpoint_seq LIMIT ?'
    return this.#reader.all<{ document: Uint8Array }>(sql, afterSeq, limit).map(readCheckpoint)
  }

  /** The checkpoint that covers an entry, once there is one. */
  checkpointOver(entrySeq: number): Checkpoint | undefined {
    const sql = 'SELECT document FROM checkpoints WHERE batch_end_seq >= ? ORDER BY checkpoint_seq LIMIT 1'
    const row = this.#reader.get<{ document: Uint8Array }>(sql, entrySeq)
    return row === undefined ? undefined : readCheckpoint(row)
  }

  /** Hashes of the entries of a batch. */
  leaves(fromSeq: number, toSeq: number): Uint8Array[] {
    const sql = 'SELECT leaf_hash AS leaf FROM receipts WHERE entry_seq BETWEEN ? AND ? ORDER BY entry_seq'
    return this.#reader.all<{ leaf: Uint8Array }>(sql, fromSeq, toSeq).map(({ leaf }) => leaf)
  }

  lastCheckpoint(): LastCheckpoint | undefined {
    const sql =
      'SELECT document, chain_frontier AS chain FROM checkpoints ORDER BY checkpoint_seq DESC LIMIT 1'
    const row = this.#reader.get<{ document: Uint8Array; chain: Uint8Array }>(sql)
    return row === undefined ? undefined : { chain: hashesOf(row.chain), checkpoint: readCheckpoint(row) }
  }
}

export class ReceiptTables extends ReceiptReads {
  readonly #tx: Transaction
  readonly #moment: Moment

  constructor(tx: Transaction, moment: Moment) {
    super(tx)
    this.#tx = tx
    this.#moment = moment
  }

  /** @returns the number of the entry. */
  append(receipt: KernelReceipt, { callerPublicKey, operationId, stage }: ReceiptAbout): number {
    const entrySeq = this.entries() + 1
    const document = receiptEntry(receipt)
    const about = [receipt.id, operationId, stage, callerPublicKey]
    const content = [leafHash(document), document, this.#moment.nowUnixMs]
    insertRow(this.#tx, 'receipts', entrySeq, ...about, ...content)
    return entrySeq
  }

  appendCheckpoint(checkpoint: Checkpoint, chain: Frontier): void {
    const { batch_end_seq, checkpoint_seq } = checkpoint.body
    const documents = [Buffer.concat(chain), encode(Checkpoint, checkpoint)]
    insertRow(this.#tx, 'checkpoints', checkpoint_seq, batch_end_seq, ...documents)
  }
}

function optional(row: ReceiptRow | undefined): LoggedReceipt | undefined {
  return row === undefined ? undefined : loggedReceipt(row)
}

function loggedReceipt(row: ReceiptRow): LoggedReceipt {
  return {
    byteLength: row.document.length,
    callerPublicKey: row.caller_public_key,
    entrySeq: row.entry_seq,
    operationId: row.operation_id,
    receipt: readDocument(KernelReceipt, row.document),
  }
}

function readCheckpoint({ document }: { readonly document: Uint8Array }): Checkpoint {
  return readDocument(Checkpoint, document)
}

function hashesOf(bytes: Uint8Array): Frontier {
  return Array.from({ length: bytes.length / HASH_BYTES }, (_, index) =>
    bytes.subarray(index * HASH_BYTES, (index + 1) * HASH_BYTES),
  )
}
