// Owns the provider's answers at rest: sealed, since they are the caller's content; receipts beside them stay clear.
// Must never: be the only copy of a fact: what the answer was is bound by digest in the receipt.
import { decode, encode, type Infer, integer, object } from '../protocol/codec.js'
import { HeaderFields } from '../protocol/destination.js'
import type { Transaction } from '../store/transaction.js'
import type { RowReader } from './attempts.js'
import { deriveKey, seal, unseal } from './sealed-box.js'

const RESPONSE_PURPOSE = 'chio.secret-broker.response-key.v1'
const LENGTH_BYTES = 4
const INSERT_SQL = 'INSERT INTO responses (attempt_id, sealed) VALUES (?, ?)'
const FIND_SQL = 'SELECT sealed FROM responses WHERE attempt_id = ?'

const ResponseHead = object({ headers: HeaderFields, status: integer({ min: 200, max: 599 }) })
export type StoredResponse = Infer<typeof ResponseHead> & { readonly body: Uint8Array }

export class ResponseVault {
  readonly #rootKey: Uint8Array

  constructor(masterKey: Uint8Array) {
    this.#rootKey = deriveKey(masterKey, RESPONSE_PURPOSE, new Uint8Array(0))
  }

  /** Seals an answer for its attempt alone: under another attempt's name it does not open. */
  seal(attemptId: string, { status, headers, body }: StoredResponse): Uint8Array {
    const head = encode(ResponseHead, { headers, status })
    const length = Buffer.alloc(LENGTH_BYTES)
    length.writeUInt32BE(head.length)
    const plaintext = Buffer.concat([length, head, body])
    const sealed = seal(this.#keyOf(attemptId), plaintext, Buffer.from(attemptId, 'utf8'))
    plaintext.fill(0)
    return sealed
  }

  insert(tx: Transaction, attemptId: string, sealed: Uint8Array): void {
    tx.run(INSERT_SQL, attemptId, sealed)
  }

  /** @throws BrokerError `custody` when it does not open. */
  find(rows: RowReader, attemptId: string): StoredResponse | undefined {
    const row = rows.get<{ sealed: Uint8Array }>(FIND_SQL, attemptId)
    if (row === undefined) return undefined
    const plaintext = Buffer.from(unseal(this.#keyOf(attemptId), row.sealed, Buffer.from(attemptId, 'utf8')))
    const bodyAt = LENGTH_BYTES + plaintext.readUInt32BE()
    const head = decode(ResponseHead, plaintext.subarray(LENGTH_BYTES, bodyAt), 'stored response head')
    return { ...head, body: plaintext.subarray(bodyAt) }
  }

  wipe(): void {
    this.#rootKey.fill(0)
  }

  #keyOf(attemptId: string): Uint8Array {
    return deriveKey(this.#rootKey, RESPONSE_PURPOSE, Buffer.from(attemptId, 'utf8'))
  }
}
