// Owns dist/bin/: the programs that users and service managers start, each in one file with what it shares with the
// others beside it. Most of a start is Node's search for modules: a hundred small files cost three times as much as
// a few large ones.
// Source: decision 0026; the module resolution of Node's documentation (esm.html).
import { readdirSync, rmSync, statSync } from 'node:fs'
import { basename, join } from 'node:path'
import { ROOT } from './checkout.mjs'
import { filesBelow } from './stamps.mjs'

export const PROGRAMS_FOLDER = 'dist/bin'

/** What is started often. chio-broker-mcp stays as compiled: a cage is given exactly the files that it loads. */
const PROGRAMS = [
  'cli/chio',
  'cli/chio-brokerd',
  'cli/chio-kerneld',
  'cli/demo',
  'examples/review-note/exercise',
  'examples/review-note/interrupted',
  'examples/review-note/review-note',
  'selftest/crash/broker-entry',
  'selftest/crash/host-entry',
  'selftest/crash/kernel-entry',
]

/** The entry of each program; what they share is found beside them. */
export const PROGRAM_OUTPUTS = PROGRAMS.map(path => `${PROGRAMS_FOLDER}/${basename(path)}.js`)

/** Packages stay where npm put them: theirs are the native parts, the licences and the fixes. */
const PACKAGE = /^[^./]/

/** Joins the compiled modules of every program. Whoever starts one meanwhile finds the old parts or the new. */
export async function joinPrograms() {
  // Not at the top: set-up reads this file before there are packages.
  const { rolldown } = await import('rolldown')
  const folder = join(ROOT, PROGRAMS_FOLDER)
  const bundle = await rolldown({
    input: Object.fromEntries(PROGRAMS.map(path => [basename(path), join(ROOT, 'dist', `${path}.js`)])),
    platform: 'node',
    external: PACKAGE,
    // What runs is what was compiled: nothing is left out because it seems unused.
    treeshake: false,
  })
  const written = await bundle.write({
    dir: folder,
    format: 'esm',
    entryFileNames: '[name].js',
    chunkFileNames: 'shared-[hash].js',
  })
  await bundle.close()
  const names = new Set(written.output.map(({ fileName }) => fileName))
  for (const name of readdirSync(folder)) if (!names.has(name)) rmSync(join(folder, name))
}

/** Whether a module was compiled after the programs were joined. */
export function areStale() {
  const modules = filesBelow(ROOT, ['dist'], path => path.endsWith('.js') && !isOfProgram(path))
  const compiledMs = Math.max(...modules.map(changedMs))
  return PROGRAM_OUTPUTS.some(path => changedMs(path) < compiledMs)
}

/** @param {string} path */
export function isOfProgram(path) {
  return path.startsWith(`${PROGRAMS_FOLDER}/`)
}

/** @param {string} path */
function changedMs(path) {
  return statSync(join(ROOT, path), { throwIfNoEntry: false })?.mtimeMs ?? 0
}
