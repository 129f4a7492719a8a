// Owns the programs that tests start: not older than the modules beside them, however those were compiled.
// Must never: keep a test from running because a program that it may not start cannot be joined; set-up refuses that.
import { areStale, joinPrograms } from '../setup/programs.mjs'

/** Vitest calls it before the first test. */
export async function setup() {
  if (!areStale()) return
  try {
    await joinPrograms()
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    process.stderr.write(`dist/bin/ stays older than what was compiled: npm run build\n${reason}\n`)
  }
}
