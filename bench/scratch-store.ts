// Owns a store of nothing but rows, opened by the rules of store/: what one durable commit costs on this disk.
import { mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '../native/clock.js'
import { openStore } from '../store/open.js'
import { provisionStore } from '../store/provision.js'
import type { StoreSchema } from '../store/schema.js'
import type { Store } from '../store/store.js'

const SCHEMA: StoreSchema = {
  applicationId: 0x6265_6e63,
  userVersion: 1,
  schemaSql: 'CREATE TABLE commits (number INTEGER PRIMARY KEY, document BLOB NOT NULL) STRICT;',
}

/** Some size between a registration and a receipt. */
const DOCUMENT = Buffer.alloc(2_048, 0x61)

export class ScratchStore {
  readonly #folder: string
  readonly #store: Store

  private constructor(folder: string, store: Store) {
    this.#folder = folder
    this.#store = store
  }

  static async open(): Promise<ScratchStore> {
    const folder = realpathSync(mkdtempSync(join(tmpdir(), 'chio-bench-store-')))
    const path = join(folder, 'scratch.db')
    await provisionStore(path, SCHEMA, { clock: systemClock })
    return new ScratchStore(folder, await openStore(path, SCHEMA, { clock: systemClock }))
  }

  async commit(): Promise<void> {
    await this.#store.transaction('scratch', tx =>
      tx.run('INSERT INTO commits (document) VALUES (?)', DOCUMENT),
    )
  }

  close(): void {
    this.#store.close()
    rmSync(this.#folder, { recursive: true, force: true })
  }
}
