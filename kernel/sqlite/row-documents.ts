// Owns: reading the documents of rows, adding rows, and remembering what was read last.
// Must never: trust a row that does not decode: it is a fault of the store, not of whoever asked.
import { type Codec, decode } from '../../protocol/codec.js'
import { BrokerError } from '../../protocol/errors.js'
import type { SqlValue, Transaction } from '../../store/transaction.js'

/** What reads need: an open store outside a transaction, and the transaction itself inside. */
export type Reader = Pick<Transaction, 'get' | 'all'>

export function insertRow(tx: Transaction, table: string, ...values: SqlValue[]): void {
  tx.run(`INSERT INTO ${table} VALUES (${values.map(() => '?').join(', ')})`, ...values)
}

export function readOptionalDocument<T>(codec: Codec<T>, bytes: Uint8Array | null): T | null {
  return bytes === null ? null : readDocument(codec, bytes)
}

/** @throws BrokerError `storage`. */
export function readDocument<T>(codec: Codec<T>, bytes: Uint8Array): T {
  try {
    return decode(codec, bytes, 'stored document')
  } catch (cause) {
    throw new BrokerError(
      'storage',
      'stored document refused: expected one that this kernel wrote, got another',
      {
        cause,
      },
    )
  }
}

/** Operations under way: each is read up to eight times between its reserve and its end. */
const MAXIMUM_REMEMBERED = 256

/**
 * Documents of operations as they were last read, oldest first. A row is taken from the store every time; only where
 * its bytes are still the same is what they say not read out of them anew.
 */
export class RememberedDocuments<T> {
  readonly #codec: Codec<T>
  readonly #known = new Map<string, { readonly bytes: Uint8Array; readonly document: T }>()

  constructor(codec: Codec<T>) {
    this.#codec = codec
  }

  read(operationId: string, bytes: Uint8Array): T {
    const known = this.#known.get(operationId)
    if (known !== undefined && Buffer.compare(known.bytes, bytes) === 0) return known.document
    const document = readDocument(this.#codec, bytes)
    if (this.#known.size >= MAXIMUM_REMEMBERED) this.#known.delete(this.#known.keys().next().value as string)
    this.#known.set(operationId, { bytes, document })
    return document
  }

  readOptional(operationId: string, bytes: Uint8Array | null): T | null {
    return bytes === null ? null : this.read(operationId, bytes)
  }
}
