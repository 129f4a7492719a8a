// Owns the folders that tests make and may not get to remove: a test that fails while it makes its world has nobody to
// close it. What is left is removed after the last test of the file, not at the end of the worker: the runner ends its
// workers by a signal. Must never: remove what it did not make.
import { mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll } from 'vitest'

const made = new Set<string>()
// The first hook of a file is the last to run: whoever uses a folder has ended by then.
afterAll(() => {
  for (const folder of made) rmSync(folder, { recursive: true, force: true })
})

/** A private folder below the system's own; its caller removes it, the end of this test file at the latest. */
export function temporaryFolder(prefix: string): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), prefix)))
  made.add(folder)
  return folder
}
