// Owns the import table of the house: which folder may import which, and why the others may not.
// A folder is a process or a trust boundary; a wrong import is a hole in it.
import type { ImportFact, ModuleFacts } from './module-facts.js'
import { topFolder } from './source-tree.js'

const EVERY_PART = [
  'protocol',
  'native',
  'system',
  'store',
  'kernel',
  'executor',
  'daemon',
  'client',
  'cage',
  'host',
  'sidecar',
  'selftest',
] as const

/** Rows may import columns, and themselves; nothing else. */
export const IMPORT_TABLE: Readonly<Record<string, readonly string[]>> = {
  protocol: [],
  native: [],
  system: ['protocol', 'native'],
  cage: ['protocol', 'native'],
  store: ['protocol', 'native'],
  kernel: ['protocol', 'native', 'system', 'store'],
  daemon: ['protocol', 'native', 'system', 'store'],
  executor: ['protocol', 'native', 'store'],
  client: ['protocol', 'native', 'system'],
  host: ['protocol', 'native', 'system', 'client', 'cage'],
  sidecar: ['protocol', 'system', 'kernel'],
  selftest: EVERY_PART,
  cli: EVERY_PART,
  examples: EVERY_PART,
  test: [...EVERY_PART, 'examples'],
  bench: EVERY_PART,
}

/** These take one function of native/, nothing more. */
const ONLY_THE_LOCK = ['store', 'executor']

/** What may be imported of native/ from outside; tests also look behind the doors. */
const NATIVE_DOORS = ['native/index.ts', 'native/clock.ts']

const OWNERS = 'the two owners never import each other'
const RPC_ONLY = 'the broker and the kernel meet only in the authority RPC'
const REASONS: Readonly<Record<string, string>> = {
  'kernel executor': OWNERS,
  'executor kernel': OWNERS,
  'daemon kernel': RPC_ONLY,
  'kernel daemon': RPC_ONLY,
}

/** Every import that the table does not allow, one sentence each. */
export function checkImportTable(modules: readonly ModuleFacts[]): string[] {
  return modules.flatMap(({ path, imports }) => {
    if (IMPORT_TABLE[topFolder(path)] === undefined) {
      return [`${path} lies in a folder that the import table does not name: give it a row or move it`]
    }
    return imports.filter(fact => fact.isRelative).flatMap(fact => judge(path, fact))
  })
}

function judge(path: string, fact: ImportFact): string[] {
  const from = topFolder(path)
  const to = topFolder(fact.target)
  const where = `${path}:${fact.line} imports ${fact.target}`
  if (from === to || isOwnSubject(path, to)) return []
  if (!IMPORT_TABLE[from]?.includes(to)) return [`${where}: ${reasonFor(from, to)}`]
  if (to === 'native' && from !== 'test' && !NATIVE_DOORS.includes(fact.target)) {
    return [`${where}: native/ is entered through ${NATIVE_DOORS.join(' and ')} only`]
  }
  const surplus = fact.names.filter(name => name !== 'lockFile')
  const isSurplus = to === 'native' && ONLY_THE_LOCK.includes(from) && surplus.length > 0
  return isSurplus
    ? [`${where} {${surplus.join(', ')}}: ${from}/ takes lockFile of native/ and nothing else`]
    : []
}

/** A test may always import what it tests: test/cli/x.test.ts imports cli/, test/native/ the inside of native/. */
function isOwnSubject(path: string, to: string): boolean {
  const [first, second, third] = path.split('/')
  return first === 'test' && third !== undefined && to !== '' && second === to
}

function reasonFor(from: string, to: string): string {
  const allowed = IMPORT_TABLE[from] ?? []
  const listed =
    allowed.length === 0 ? 'nothing of ours' : `only ${allowed.map(name => `${name}/`).join(', ')}`
  return REASONS[`${from} ${to}`] ?? `${from}/ imports ${listed}`
}
