// Owns the programs that tests start: never older than the modules beside them, however those were compiled.
import { areStale, joinPrograms } from '../setup/programs.mjs'

/** Vitest calls it before the first test. */
export async function setup() {
  if (areStale()) await joinPrograms()
}
