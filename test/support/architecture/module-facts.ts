// Owns what a TypeScript file does as far as the rules care: its imports, and where it reads a clock, writes to
// the console, or holds SQL. Read from the syntax tree, so that a comment or a string never counts as code.
import { posix } from 'node:path'
import { parseSync } from 'vite'
import type { SourceFile } from './source-tree.js'

export interface ImportFact {
  readonly specifier: string
  /** The file it names, for a relative import; the specifier itself otherwise. */
  readonly target: string
  readonly isRelative: boolean
  /** Imported names; `*` for a namespace, a bare, a dynamic or a re-export-all import. */
  readonly names: readonly string[]
  readonly line: number
}

export interface UseFact {
  readonly what: string
  readonly line: number
}

export interface ModuleFacts {
  readonly path: string
  readonly imports: readonly ImportFact[]
  readonly clocks: readonly UseFact[]
  readonly consoles: readonly UseFact[]
  readonly sql: readonly UseFact[]
}

interface SyntaxNode {
  readonly type: string
  readonly start: number
  readonly [member: string]: unknown
}

const IMPORTING = [
  'ImportDeclaration',
  'ExportNamedDeclaration',
  'ExportAllDeclaration',
  'ImportExpression',
  'TSImportType',
]
const SQL =
  /\b(SELECT\s[\s\S]*?\sFROM|INSERT\s+(OR\s+\w+\s+)?INTO|UPDATE\s+\w+\s+SET|DELETE\s+FROM|CREATE\s+(UNIQUE\s+|TEMP\s+)?(TABLE|INDEX|TRIGGER|VIEW)|PRAGMA\s|BEGIN\s+IMMEDIATE)/

/** Reads the facts of one file. @throws SyntaxError when the file does not parse */
export function moduleFacts(file: SourceFile): ModuleFacts {
  const { program, errors } = parseSync(file.path, file.text)
  const [error] = errors
  if (error !== undefined) throw new SyntaxError(`${file.path} does not parse: ${error.message}`)
  const lineAt = lineCounter(file.text)
  const facts = { path: file.path, imports: [], clocks: [], consoles: [], sql: [] } as const
  const collected: Collected = { ...facts, imports: [], clocks: [], consoles: [], sql: [] }
  visit(program as unknown as SyntaxNode, node => collect(node, collected, lineAt))
  return collected
}

interface Collected extends ModuleFacts {
  readonly imports: ImportFact[]
  readonly clocks: UseFact[]
  readonly consoles: UseFact[]
  readonly sql: UseFact[]
}

function lineCounter(text: string): (offset: number) => number {
  return offset => text.slice(0, offset).split('\n').length
}

function isNode(value: unknown): value is SyntaxNode {
  return typeof value === 'object' && value !== null && typeof (value as { type?: unknown }).type === 'string'
}

function visit(node: SyntaxNode, each: (node: SyntaxNode) => void): void {
  each(node)
  for (const member of Object.values(node)) {
    for (const child of Array.isArray(member) ? (member as unknown[]) : [member]) {
      if (isNode(child)) visit(child, each)
    }
  }
}

function collect(node: SyntaxNode, facts: Collected, lineAt: (offset: number) => number): void {
  const line = lineAt(node.start)
  const imported = IMPORTING.includes(node.type) ? importOf(node, facts.path, line) : undefined
  if (imported !== undefined) facts.imports.push(imported)
  const clock = clockRead(node)
  if (clock !== undefined) facts.clocks.push({ what: clock, line })
  if (memberOf(node)?.object === 'console') facts.consoles.push({ what: 'console', line })
  const statement = textOf(node)
  if (statement !== undefined && SQL.test(statement)) facts.sql.push({ what: 'SQL', line })
}

function importOf(node: SyntaxNode, path: string, line: number): ImportFact | undefined {
  const specifier = isNode(node['source']) ? node['source']['value'] : undefined
  if (typeof specifier !== 'string') return undefined
  const isRelative = specifier.startsWith('.')
  const resolved = posix.join(posix.dirname(path), specifier).replace(/\.js$/, '.ts')
  return { specifier, target: isRelative ? resolved : specifier, isRelative, names: namesOf(node), line }
}

function namesOf(node: SyntaxNode): string[] {
  const specifiers = Array.isArray(node['specifiers']) ? node['specifiers'].filter(isNode) : []
  const names = specifiers.map(specifier => {
    const name = specifier['imported'] ?? specifier['local']
    const isNamed = specifier.type === 'ImportSpecifier' || specifier.type === 'ExportSpecifier'
    return isNamed && isNode(name) && typeof name['name'] === 'string' ? name['name'] : '*'
  })
  return names.length === 0 ? ['*'] : names
}

/** `object.property` or `object['property']` of two plain names. */
function memberOf(node: SyntaxNode): { object: string; property: string } | undefined {
  if (node.type !== 'MemberExpression' || !isNode(node['object']) || !isNode(node['property']))
    return undefined
  const object = node['object']['name']
  const property = node['property']['name'] ?? node['property']['value']
  return typeof object === 'string' && typeof property === 'string' ? { object, property } : undefined
}

const CLOCK_MEMBERS = new Set([
  'Date.now',
  'process.hrtime',
  'process.uptime',
  'performance.now',
  'performance.timeOrigin',
])

function clockRead(node: SyntaxNode): string | undefined {
  const member = memberOf(node)
  const name = member === undefined ? '' : `${member.object}.${member.property}`
  if (CLOCK_MEMBERS.has(name)) return name
  const isDate = isNode(node['callee']) && node['callee']['name'] === 'Date'
  if (isDate && node.type === 'CallExpression') return 'Date()'
  const isNow = Array.isArray(node['arguments']) && node['arguments'].length === 0
  return isDate && node.type === 'NewExpression' && isNow ? 'new Date()' : undefined
}

function textOf(node: SyntaxNode): string | undefined {
  const value = node.type === 'TemplateElement' ? (node['value'] as { raw?: unknown }).raw : node['value']
  if (node.type !== 'TemplateElement' && node.type !== 'Literal') return undefined
  return typeof value === 'string' ? value : undefined
}
