// Owns: what a store file promises about itself (application id, version, schema text) and the tables every
// store of ours carries: the pin and the counters of its head.
// Must never: change a text below without raising user_version of every store, since texts are compared at open.
// Source: sqlite.org/stricttables.html, sqlite.org/lang_createtrigger.html, PRAGMA application_id.

export interface StoreSchema {
  /** 31-bit number in the file header that tells this kind of store from every other. */
  readonly applicationId: number
  /** Raised with every change of `schemaSql`. */
  readonly userVersion: number
  /** CREATE statements only; every table STRICT. */
  readonly schemaSql: string
}

/** Triggers that refuse UPDATE and DELETE; `INSERT OR REPLACE` is refused too, because every connection sets recursive_triggers. */
export function appendOnly(table: string): string {
  if (!/^[a-z][a-z0-9_]*$/.test(table)) {
    throw new TypeError(`append-only table name: expected [a-z][a-z0-9_]*, got ${JSON.stringify(table)}`)
  }
  const refuse = `BEGIN SELECT RAISE(ABORT, '${table} is append-only'); END;`
  return [
    `CREATE TRIGGER ${table}_refuses_update BEFORE UPDATE ON ${table} ${refuse}`,
    `CREATE TRIGGER ${table}_refuses_delete BEFORE DELETE ON ${table} ${refuse}`,
    '',
  ].join('\n')
}

/** The last row of `store_pin` holds. A new one is added only by an adoption, which keeps its authorization. */
export const STORE_TABLES_SQL = `
CREATE TABLE store_pin (
  sequence INTEGER PRIMARY KEY,
  store_id TEXT NOT NULL CHECK (length(store_id) = 64),
  device TEXT NOT NULL,
  inode TEXT NOT NULL,
  pinned_at_unix_ms INTEGER NOT NULL,
  adoption BLOB
) STRICT;
${appendOnly('store_pin')}
CREATE TABLE store_state (
  singleton INTEGER PRIMARY KEY CHECK (singleton = 1),
  openings INTEGER NOT NULL,
  checkpoints INTEGER NOT NULL,
  commits INTEGER NOT NULL
) STRICT;
`

export function completeSchemaSql(schema: StoreSchema): string {
  return `${STORE_TABLES_SQL}\n${schema.schemaSql}`
}

export function checkStoreSchema(schema: StoreSchema): void {
  checkPositiveInteger('applicationId', schema.applicationId)
  checkPositiveInteger('userVersion', schema.userVersion)
}

function checkPositiveInteger(title: string, value: number): void {
  if (!Number.isInteger(value) || value < 1 || value > 0x7fff_ffff) {
    throw new RangeError(`${title}: expected an integer from 1 to 2147483647, got ${value}`)
  }
}
