// Owns the folders that tests make and may not get to remove: a test that fails while it makes its world has nobody to
// close it. What is left is removed when the worker ends. Must never: remove what it did not make.
import { mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const made = new Set<string>()
process.once('exit', () => {
  for (const folder of made) rmSync(folder, { recursive: true, force: true })
})

/** A private folder below the system's own; its caller removes it, the end of this process at the latest. */
export function temporaryFolder(prefix: string): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), prefix)))
  made.add(folder)
  return folder
}
