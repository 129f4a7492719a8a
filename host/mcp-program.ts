// chio-broker-mcp as a tool of a cage: node, and as read-only files exactly what that program loads, wherever this
// package lies and whether or not the cage's uid could reach it there. Reads our own compiled code; runs nothing.
import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join, relative } from 'node:path'
import { type ResolvedTool, resolveTool } from '../cage/index.js'
import { packageRoot } from '../native/index.js'
import type { PublicKey } from '../protocol/keys.js'

export const BROKER_MCP = 'chio-broker-mcp'

/** The name of its tool when the host chooses it. */
const TOOL_NAME = 'execute'
const ENTRY = join('dist', 'cli', `${BROKER_MCP}.js`)
const PROGRAM_AT = '/run/chio-cage/program'

/** What the compiler writes: one statement a module, its name in quotes. */
const IMPORT = /^(?:import|export)\b[^'";]*?from\s*['"]([^'"]+)['"]|^import\s*['"]([^'"]+)['"]/gm

/** What the server is told: whose frames it builds, and whose signature it believes. */
export interface BrokerMcpPins {
  readonly tenantScope: string
  readonly receiptKey: PublicKey
}

/** The compiled program; for telling whether somebody named it by its path. */
export const brokerMcpPath = (): string => join(packageRoot(), ENTRY)

/**
 * The server as a tool. Without arguments of the operator's it gets its three from the host's pins.
 * @throws BrokerError `tool_refused` when node cannot be run in a cage.
 */
export function brokerMcpTool(pins: BrokerMcpPins, args: readonly string[] = []): ResolvedTool {
  const { tenantScope, receiptKey } = pins
  const own = ['--tenant-scope', tenantScope, '--tool-name', TOOL_NAME, '--receipt-signer', receiptKey]
  const resolved = resolveTool(process.execPath, [
    join(PROGRAM_AT, ENTRY),
    ...(args.length === 0 ? own : args),
  ])
  const files = programFiles().map(({ source, place }) => ({ source, at: join(PROGRAM_AT, place) }))
  return { ...resolved, files }
}

interface ProgramFile {
  readonly source: string
  /** Below the program's folder, as node looks for it. */
  readonly place: string
}

/** The entry, all it imports, and the manifests that say how node reads them. */
function programFiles(): ProgramFile[] {
  const root = packageRoot()
  const found = new Map<string, string>([[join(root, 'package.json'), 'package.json']])
  const open: ProgramFile[] = [{ source: join(root, ENTRY), place: ENTRY }]
  for (let file = open.pop(); file !== undefined; file = open.pop()) {
    if (found.has(file.source)) continue
    found.set(file.source, file.place)
    if (file.source.endsWith('.js')) open.push(...importsOf(file))
  }
  return [...found].map(([source, place]) => ({ source, place }))
}

function importsOf({ source, place }: ProgramFile): ProgramFile[] {
  const text = readFileSync(source, 'utf8')
  return [...text.matchAll(IMPORT)].flatMap(match => {
    const name = match[1] ?? match[2] ?? ''
    if (name.startsWith('node:')) return []
    if (!name.startsWith('.')) return packageFiles(name)
    return [{ source: join(dirname(source), name), place: join(dirname(place), name) }]
  })
}

/** A module lies in our own node_modules, or beside us in those of whoever installed us. */
function packageFiles(name: string): ProgramFile[] {
  const source = createRequire(join(packageRoot(), 'package.json')).resolve(name)
  let folder = dirname(source)
  while (!existsSync(join(folder, 'package.json'))) folder = dirname(folder)
  const manifest = join(folder, 'package.json')
  return [source, manifest].map(path => ({
    source: path,
    place: join('node_modules', name, relative(folder, path)),
  }))
}
