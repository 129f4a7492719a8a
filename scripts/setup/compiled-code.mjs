// Owns dist/: compiled when a source changed, its programs joined, without leftovers of sources that are gone, the
// programs executable and reachable by `npx`.
import { chmodSync, lstatSync, mkdirSync, readFileSync, readlinkSync, rmSync, symlinkSync } from 'node:fs'
import { existsSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { logPath, RECORDS, ROOT } from './checkout.mjs'
import { runLongStep } from './long-step.mjs'
import { npmCommand } from './npm.mjs'
import { isOfProgram, PROGRAM_OUTPUTS, PROGRAMS_FOLDER } from './programs.mjs'
import { digestOfSources, filesBelow, isUpToDate, lookOfOutputs, writeStamp } from './stamps.mjs'

const BUILD_RECORD = 'dist/.tsbuildinfo'
const OUTPUT_ENDING = /\.(d\.ts|js\.map|js)$/

/** @typedef {{ include: string[] }} CompilerSettings */

/** The folders that are compiled: what tsconfig.json includes, less what tsconfig.build.json leaves out. */
function sourceFolders() {
  /** @type {CompilerSettings} */
  const base = JSON.parse(readFileSync(join(ROOT, 'tsconfig.json'), 'utf8'))
  /** @type {{ exclude: string[] }} */
  const build = JSON.parse(readFileSync(join(ROOT, 'tsconfig.build.json'), 'utf8'))
  return base.include.filter(path => !build.exclude.includes(path))
}

/** @param {string} path */
function isTypeScript(path) {
  return path.endsWith('.ts') && !path.endsWith('.d.ts')
}

/** @param {readonly string[]} sources */
function expectedOutputs(sources) {
  return sources.map(path => `dist/${path.replace(/\.ts$/, '.js')}`)
}

/** Compiles where dist/ is older than the sources. */
export async function provideCompiledCode() {
  const stampPath = join(RECORDS, 'compiled.json')
  const sources = filesBelow(ROOT, sourceFolders(), path => path.endsWith('.ts'))
  const settings = ['tsconfig.json', 'tsconfig.build.json', 'package-lock.json', 'scripts/setup/programs.mjs']
  const digest = digestOfSources(ROOT, [...sources, ...settings], process.version)
  const outputs = expectedOutputs(sources.filter(isTypeScript))
  const look = lookOf(outputs)
  const compiled = !isUpToDate(stampPath, digest, look)
  if (compiled) {
    // The compiler trusts its own record, not the disk: with an output gone it would not write it again.
    if (look === undefined) rmSync(join(ROOT, BUILD_RECORD), { force: true })
    await compile()
    removeLeftovers(new Set(outputs))
    writeStamp(stampPath, { sources: digest, outputs: lookOf(outputs) ?? '' })
  }
  const linked = linkPrograms(ROOT)
  return compiled || linked
}

/**
 * Compiled modules, programs, and the parts that programs share.
 * @param {readonly string[]} outputs
 */
function lookOf(outputs) {
  const programs = filesBelow(ROOT, [PROGRAMS_FOLDER], () => true)
  return lookOfOutputs(ROOT, [...outputs, BUILD_RECORD, ...new Set([...PROGRAM_OUTPUTS, ...programs])])
}

async function compile() {
  await runLongStep({
    title: 'compiling (tsc, rolldown)',
    command: npmCommand(['run', 'build']),
    folder: ROOT,
    logPath: logPath('compile'),
  })
}

/**
 * Removes what an earlier compile left of sources that are gone: it could still be imported.
 * @param {ReadonlySet<string>} outputs
 */
function removeLeftovers(outputs) {
  for (const path of filesBelow(ROOT, ['dist'], file => OUTPUT_ENDING.test(file))) {
    if (isOfProgram(path)) continue
    if (!outputs.has(path.replace(OUTPUT_ENDING, '.js'))) rmSync(join(ROOT, path))
  }
}

/**
 * Puts the package's own programs where `npx` finds them.
 * @param {string} root
 * @returns {boolean} whether something had to be done
 */
export function linkPrograms(root) {
  /** @type {{ bin?: Record<string, string> }} */
  const { bin = {} } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const present = Object.entries(bin).filter(([, target]) => existsSync(join(root, target)))
  return present.map(([name, target]) => linkProgram(root, name, target)).includes(true)
}

/**
 * @param {string} root
 * @param {string} name
 * @param {string} target
 */
function linkProgram(root, name, target) {
  const program = join(root, target)
  const link = join(root, 'node_modules', '.bin', name)
  const wanted = relative(dirname(link), program)
  const isExecutable = (lstatSync(program).mode & 0o111) === 0o111
  const isLinked =
    lstatSync(link, { throwIfNoEntry: false })?.isSymbolicLink() && readlinkSync(link) === wanted
  if (isExecutable && isLinked) return false
  if (!isExecutable) chmodSync(program, 0o755)
  mkdirSync(dirname(link), { recursive: true })
  rmSync(link, { force: true })
  symlinkSync(wanted, link)
  return true
}
