// Owns what only some folders may do: start processes, open SQLite, read clocks, print, hold SQL; and that no
// files import each other in a circle. Each finding is one sentence with the place.
import type { ModuleFacts } from './module-facts.js'
import { topFolder } from './source-tree.js'

const MAY_SPAWN = ['cage', 'cli', 'selftest', 'examples', 'test', 'bench']
const MAY_PRINT = ['cli', 'selftest', 'examples', 'test', 'bench']
const MAY_MEASURE = ['test', 'bench']
const CLOCK_FILE = 'native/clock.ts'
const KERNEL_SQL_FOLDER = 'kernel/sqlite/'

export function checkChildProcess(modules: readonly ModuleFacts[]): string[] {
  return importersOf(modules, ['node:child_process', 'child_process', 'node:cluster', 'cluster'])
    .filter(({ path }) => !MAY_SPAWN.includes(topFolder(path)))
    .map(
      ({ path, line, specifier }) =>
        `${path}:${line} imports ${specifier}: processes start in ${MAY_SPAWN.join('/, ')}/ only`,
    )
}

export function checkSqlite(modules: readonly ModuleFacts[]): string[] {
  return importersOf(modules, ['better-sqlite3', 'node:sqlite'])
    .filter(({ path }) => topFolder(path) !== 'store')
    .map(
      ({ path, line, specifier }) =>
        `${path}:${line} imports ${specifier}: store/ is its only importer, so that no file is opened without its rules`,
    )
}

export function checkClocks(modules: readonly ModuleFacts[]): string[] {
  const governed = modules.filter(({ path }) => path !== CLOCK_FILE && !MAY_MEASURE.includes(topFolder(path)))
  const reads = governed.flatMap(({ path, clocks }) => clocks.map(({ what, line }) => ({ path, line, what })))
  const imports = importersOf(governed, ['node:perf_hooks', 'perf_hooks']).map(found => ({
    ...found,
    what: found.specifier,
  }))
  return [...reads, ...imports].map(
    ({ path, line, what }) =>
      `${path}:${line} reads ${what}: clocks are read in ${CLOCK_FILE} only and handed in as a Clock`,
  )
}

export function checkConsole(modules: readonly ModuleFacts[]): string[] {
  return modules
    .filter(({ path }) => !MAY_PRINT.includes(topFolder(path)))
    .flatMap(({ path, consoles }) =>
      consoles.map(({ line }) => `${path}:${line} uses console: only ${MAY_PRINT.join('/, ')}/ print`),
    )
}

/** The SQL of kernel/ lies in one folder: another database must only replace that one. */
export function checkKernelSql(modules: readonly ModuleFacts[]): string[] {
  return modules
    .filter(({ path, sql }) => topFolder(path) === 'kernel' && sql.length > 0)
    .filter(({ path }) => !path.startsWith(KERNEL_SQL_FOLDER))
    .map(({ path }) => `${path} holds SQL: ${KERNEL_SQL_FOLDER} does, behind the store's interface`)
}

/** Every bare import names a declared package or a `node:` module; what ships imports no development package. */
export function checkPackages(modules: readonly ModuleFacts[], manifest: PackageManifest): string[] {
  const shipped = Object.keys(manifest.dependencies ?? {})
  const development = Object.keys(manifest.devDependencies ?? {})
  return modules.flatMap(({ path, imports }) => {
    const known = MAY_MEASURE.includes(topFolder(path)) ? [...shipped, ...development] : shipped
    const foreign = imports.filter(
      ({ isRelative, specifier }) => !isRelative && !specifier.startsWith('node:'),
    )
    return foreign
      .filter(({ specifier }) => !known.includes(packageOf(specifier)))
      .map(
        ({ line, specifier }) =>
          `${path}:${line} imports ${specifier}: expected a node: module or one of ${known.join(', ')}`,
      )
  })
}

export interface PackageManifest {
  readonly dependencies?: Readonly<Record<string, string>>
  readonly devDependencies?: Readonly<Record<string, string>>
}

function packageOf(specifier: string): string {
  return specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/')
}

function importersOf(
  modules: readonly ModuleFacts[],
  specifiers: readonly string[],
): { path: string; line: number; specifier: string }[] {
  return modules.flatMap(({ path, imports }) =>
    imports
      .filter(({ specifier }) => specifiers.includes(specifier))
      .map(({ line, specifier }) => ({ path, line, specifier })),
  )
}

/** Every circle of imports, once, written as the way round. Type-only imports count: they bind as tightly. */
export function checkCycles(modules: readonly ModuleFacts[]): string[] {
  const edges = new Map(
    modules.map(({ path, imports }) => [
      path,
      imports.filter(fact => fact.isRelative).map(fact => fact.target),
    ]),
  )
  const finished = new Set<string>()
  const circles: string[] = []
  for (const path of edges.keys()) followImports(path, { edges, finished, circles, way: [] })
  return circles
}

interface Walk {
  readonly edges: ReadonlyMap<string, readonly string[]>
  readonly finished: Set<string>
  readonly circles: string[]
  readonly way: readonly string[]
}

function followImports(path: string, walk: Walk): void {
  const met = walk.way.indexOf(path)
  if (met !== -1)
    walk.circles.push(
      `${[...walk.way.slice(met), path].join(' → ')}: these files import each other in a circle`,
    )
  if (met !== -1 || walk.finished.has(path)) return
  for (const target of walk.edges.get(path) ?? [])
    followImports(target, { ...walk, way: [...walk.way, path] })
  walk.finished.add(path)
}
