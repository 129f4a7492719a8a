// Owns: the comparison of the schema inside a file with the schema this program was written for.
// Must never: alter a file. A schema that differs by one character is refused, not repaired.
// Source: sqlite.org/schematab.html.
import Database from 'better-sqlite3'
import { BrokerError } from '../protocol/errors.js'
import { completeSchemaSql, type StoreSchema } from './schema.js'

interface SchemaRow {
  readonly type: string
  readonly name: string
  readonly sql: string | null
}

/** Refuses a file whose header numbers or schema texts are not the expected ones. */
export function assertSchema(database: Database.Database, schema: StoreSchema): void {
  assertHeader(database, 'application_id', schema.applicationId)
  assertHeader(database, 'user_version', schema.userVersion)
  const expected = expectedRows(schema)
  const found = schemaRows(database)
  for (const row of expected) {
    const twin = found.find(other => other.type === row.type && other.name === row.name)
    if (twin === undefined) throw differs(`${row.type} ${row.name}`, 'none')
    if (twin.sql !== row.sql) throw differs(`the text of ${row.type} ${row.name} as provisioned`, 'another')
  }
  if (found.length !== expected.length) throw differs(`${expected.length} objects`, `${found.length}`)
}

/** Refuses tables that would store a text where an integer was declared. */
export function assertStrictTables(database: Database.Database): void {
  const tables = database
    .prepare<[], { name: string; strict: number }>(
      "SELECT name, strict FROM pragma_table_list WHERE schema = 'main' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'",
    )
    .all()
  for (const { name, strict } of tables) {
    if (strict !== 1)
      throw new TypeError(`store schema: expected table ${name} to be STRICT, got an ordinary one`)
  }
}

function expectedRows(schema: StoreSchema): SchemaRow[] {
  const model = new Database(':memory:')
  try {
    model.exec(completeSchemaSql(schema))
    return schemaRows(model)
  } finally {
    model.close()
  }
}

/** sqlite_stat tables come and go with ANALYZE and say nothing about the schema. */
function schemaRows(database: Database.Database): SchemaRow[] {
  return database
    .prepare<[], SchemaRow>(
      "SELECT type, name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite\\_stat%' ESCAPE '\\'",
    )
    .all()
}

function assertHeader(database: Database.Database, name: string, expected: number): void {
  const got: unknown = database.pragma(name, { simple: true })
  if (got !== expected) throw differs(`${name} ${expected}`, String(got))
}

function differs(expected: string, got: string): BrokerError {
  return new BrokerError(
    'storage',
    `store schema refused: expected ${expected}, got ${got}; this file belongs to another program or version`,
    { outcome: 'not_started' },
  )
}
