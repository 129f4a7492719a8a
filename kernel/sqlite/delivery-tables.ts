// Owns: the rows of caller delivery: what was frozen at the capture, the authorization as it was signed, and what was
// reported, without its output. Each stands once an operation.
// Must never: change one or lose one: a repeated start and a repeated report are answered from them.
// Source: the caller dispatch context of the admission store; sqlite.org/stricttables.html.
import {
  CallerAuthorization,
  callerAuthorizationDigest,
  canonicalAuthorization,
} from '../../protocol/caller-authorization.js'
import { type FrozenContext, readFrozenContext } from '../../protocol/caller-dispatch-context.js'
import { encode } from '../../protocol/codec.js'
import { BrokerError } from '../../protocol/errors.js'
import { MAXIMUM_CALLER_AUTHORIZATION_BYTES, MAXIMUM_CALLER_CONTEXT_BYTES } from '../../protocol/limits.js'
import { appendOnly } from '../../store/schema.js'
import type { Transaction } from '../../store/transaction.js'
import { RetainedReport } from '../delivery/retained-report.js'
import { insertRow, readDocument, type Reader } from './row-documents.js'

const TABLES = ['caller_contexts', 'caller_authorizations', 'caller_reports']

export const DELIVERY_SQL = `
CREATE TABLE caller_contexts (operation_id TEXT PRIMARY KEY REFERENCES operations, digest TEXT NOT NULL,
  frame BLOB NOT NULL CHECK (length(frame) <= ${MAXIMUM_CALLER_CONTEXT_BYTES})) STRICT;
CREATE TABLE caller_authorizations (operation_id TEXT PRIMARY KEY REFERENCES caller_contexts, digest TEXT NOT NULL UNIQUE,
  document BLOB NOT NULL CHECK (length(document) <= ${MAXIMUM_CALLER_AUTHORIZATION_BYTES})) STRICT;
CREATE TABLE caller_reports (operation_id TEXT PRIMARY KEY REFERENCES caller_authorizations, report_digest TEXT NOT NULL UNIQUE,
  document BLOB NOT NULL) STRICT;
${TABLES.map(appendOnly).join('\n')}`

interface DocumentRow {
  readonly document: Uint8Array
}

export class DeliveryReads {
  readonly #reader: Reader

  constructor(reader: Reader) {
    this.#reader = reader
  }

  /** @throws BrokerError `storage` for a frame that this kernel did not write. */
  context(operationId: string): FrozenContext | undefined {
    const sql = 'SELECT digest, frame FROM caller_contexts WHERE operation_id = ?'
    const row = this.#reader.get<{ digest: string; frame: Uint8Array }>(sql, operationId)
    if (row === undefined) return undefined
    try {
      const frozen = readFrozenContext(row.frame)
      if (frozen.digest === row.digest) return frozen
    } catch (cause) {
      throw unreadable(cause)
    }
    throw unreadable(undefined)
  }

  authorization(operationId: string): CallerAuthorization | undefined {
    const sql = 'SELECT document FROM caller_authorizations WHERE operation_id = ?'
    const row = this.#reader.get<DocumentRow>(sql, operationId)
    return row === undefined ? undefined : readDocument(CallerAuthorization, row.document)
  }

  report(operationId: string): RetainedReport | undefined {
    const sql = 'SELECT document FROM caller_reports WHERE operation_id = ?'
    const row = this.#reader.get<DocumentRow>(sql, operationId)
    return row === undefined ? undefined : readDocument(RetainedReport, row.document)
  }
}

export class DeliveryTables extends DeliveryReads {
  readonly #tx: Transaction

  constructor(tx: Transaction) {
    super(tx)
    this.#tx = tx
  }

  insertContext(operationId: string, { bytes, digest }: FrozenContext): void {
    insertRow(this.#tx, 'caller_contexts', operationId, digest, bytes)
  }

  insertAuthorization(operationId: string, signed: CallerAuthorization): void {
    const document = [callerAuthorizationDigest(signed), canonicalAuthorization(signed)]
    insertRow(this.#tx, 'caller_authorizations', operationId, ...document)
  }

  insertReport(operationId: string, report: RetainedReport): void {
    const { report_digest } = report.observation
    insertRow(this.#tx, 'caller_reports', operationId, report_digest, encode(RetainedReport, report))
  }
}

function unreadable(cause: unknown): BrokerError {
  const expected = 'expected the one that was frozen with its capture'
  return new BrokerError('storage', `caller dispatch context refused: ${expected}`, { cause })
}
