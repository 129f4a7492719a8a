// Owns the filling of a store with copies of one real operation's rows: every identifier another one, documents cut
// short (no operation reads another's), every other column as that operation left it. Identifiers grow with the
// number of the copy, so that filling a million rows is a matter of minutes; the trees have the depth of real ones.
// Must never: go around the store's own rules: its triggers and constraints hold for every copy.
import type { SqlValue, Transaction } from '../store/transaction.js'

/** Copies of one transaction. */
export const COPIES_PER_COMMIT = 500

export interface CopiedTable {
  readonly name: string
  /** Which rows are copied: a condition over the table, with the key of the original as its one value. */
  readonly where: string
  readonly key: SqlValue
  /** Columns that get an identifier of their own in every copy. */
  readonly identifiers: readonly string[]
  /** Columns with a document in them. */
  readonly documents?: readonly string[]
  /** Columns that begin as something else than the original ended as: SQL expressions. */
  readonly begins?: Readonly<Record<string, string>>
}

export interface CopyRange {
  readonly first: number
  readonly count: number
  /** Of the whole filling: identifiers are spread over their whole space. */
  readonly total: number
}

/** A million whole ones would be twenty gigabytes. */
export const DOCUMENT_BYTES = 256
const HEX_DIGITS_OF_NUMBER = 8
const REST_OF_DIGEST = '5'.repeat(64 - HEX_DIGITS_OF_NUMBER)

/** Keeps a prefix in front of a digest; anything shorter than a digest is replaced as a whole. */
function identifierOf(column: string, total: number): string {
  const step = Math.floor(2 ** 32 / total)
  const number = `printf('%08x', numbers.n * ${step})`
  return `CASE WHEN length(original.${column}) >= 64
    THEN substr(original.${column}, 1, length(original.${column}) - 64) || ${number} || '${REST_OF_DIGEST}'
    ELSE ${number} || '-bench-copy' END`
}

export function copyRows(tx: Transaction, table: CopiedTable, range: CopyRange): void {
  const original = tx.get<Record<string, SqlValue>>(
    `SELECT * FROM ${table.name} WHERE ${table.where} LIMIT 1`,
    table.key,
  )
  if (original === undefined) throw new Error(`${table.name}: expected rows of a real operation, got none`)
  const columns = Object.keys(original)
  const values = columns.map(column => {
    if (table.identifiers.includes(column)) return identifierOf(column, range.total)
    if (table.documents?.includes(column)) return `substr(original.${column}, 1, ${DOCUMENT_BYTES})`
    return table.begins?.[column] ?? `original.${column}`
  })
  tx.run(
    `WITH RECURSIVE numbers(n) AS (SELECT ? UNION ALL SELECT n + 1 FROM numbers WHERE n + 1 < ?)
    INSERT INTO ${table.name} (${columns.join(', ')})
    SELECT ${values.join(', ')} FROM numbers, (SELECT * FROM ${table.name} WHERE ${table.where}) AS original
    ORDER BY numbers.n`,
    range.first,
    range.first + range.count,
    table.key,
  )
}

/** The ranges of one filling, one a commit. */
export function rangesOf(total: number): CopyRange[] {
  return Array.from({ length: Math.ceil(total / COPIES_PER_COMMIT) }, (_none, index) => {
    const first = index * COPIES_PER_COMMIT
    return { first, count: Math.min(COPIES_PER_COMMIT, total - first), total }
  })
}
