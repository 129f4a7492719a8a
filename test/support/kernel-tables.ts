// Owns a kernel's tables without a kernel: a provisioned store in a private folder, opened and opened again as often as
// a test wants, and what its transactions did.
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import type { SqliteMove } from '../../kernel/sqlite/move.js'
import { KERNEL_STORE_SCHEMA } from '../../kernel/sqlite/schema.js'
import { openTables, type SqliteAdmissionTables } from '../../kernel/sqlite/tables.js'
import { systemClock } from '../../native/clock.js'
import { provisionStore } from '../../store/provision.js'
import { temporaryFolder } from './temporary-folder.js'

export interface KernelTables {
  readonly path: string
  /** One durable commit, or none when the body throws. */
  commit<T>(body: (move: SqliteMove) => T): Promise<T>
  /** Closes the store and opens it again as its next owner. */
  reopen(): Promise<void>
  remove(): void
}

export async function makeKernelTables(): Promise<KernelTables> {
  const folder = temporaryFolder('chio-tables-')
  const path = join(folder, 'kernel.db')
  await provisionStore(path, KERNEL_STORE_SCHEMA, { clock: systemClock })
  return openKernelTables(path, folder)
}

/** The tables of a store whose kernel has ended. @param folder removed with them. */
export async function openKernelTables(path: string, folder: string): Promise<KernelTables> {
  let tables: SqliteAdmissionTables = await openTables(path, { clock: systemClock })
  return {
    path,
    commit: body => tables.transaction('test', body),
    async reopen() {
      tables.close()
      tables = await openTables(path, { clock: systemClock })
    },
    remove() {
      tables.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
