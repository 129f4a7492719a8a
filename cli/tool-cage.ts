// The cage of one run, from what the operator named: the tool, resolved to one exec, and the uid it runs
// under. Without a tool it is chio-exec, which submits the request and prints the answer; of servers, chio-broker-mcp.
import { existsSync, realpathSync } from 'node:fs'
import { resolve } from 'node:path'
import { cagePolicy, type CagePolicy, type ExecPolicy, resolveTool } from '../cage/index.js'
import { BROKER_MCP, brokerMcpPath, type BrokerMcpPins, brokerMcpTool } from '../host/mcp-program.js'
import { nativePath } from '../native/index.js'
import { BrokerError } from '../protocol/errors.js'
import type { Identities } from '../system/identities.js'

export interface ToolChoice {
  /** The tool and its arguments; empty for chio-exec. */
  readonly command: readonly string[]
  readonly exec: ExecPolicy
}

/** Builds the policy of one run. @throws CageRefusal when the tool cannot be started in a cage. */
export function toolCage(choice: ToolChoice, identities: Identities): CagePolicy {
  const [command, ...args] = choice.command
  const identity = launcherIsRoot() ? requireCageIdentity(identities) : null
  if (command === undefined) {
    const { tool, files, profile } = resolveTool(nativePath('chio-exec'))
    return cagePolicy({ tool, files, profile, exec: 'once', identity })
  }
  const { tool, files, profile } = resolveTool(command, args)
  return cagePolicy({ tool, files, profile, exec: choice.exec, identity })
}

/** The same for an MCP server, which is spoken with through its standard input. */
export function serverCage(choice: ToolChoice, identities: Identities, pins: BrokerMcpPins): CagePolicy {
  const [command = BROKER_MCP, ...args] = choice.command
  const identity = launcherIsRoot() ? requireCageIdentity(identities) : null
  const isOurs = command === BROKER_MCP || isBrokerMcp(command)
  const resolved = isOurs ? brokerMcpTool(pins, args) : resolveTool(command, args)
  return cagePolicy({ ...resolved, exec: isOurs ? 'once' : choice.exec, identity, input: 'pipe' })
}

/** By its path or a link to it, such as the one in node_modules/.bin. */
function isBrokerMcp(command: string): boolean {
  const path = resolve(command)
  return command.includes('/') && existsSync(path) && realpathSync(path) === realpathSync(brokerMcpPath())
}

function launcherIsRoot(): boolean {
  return process.geteuid?.() === 0
}

function requireCageIdentity(identities: Identities) {
  if (identities.cage !== null) return identities.cage
  throw new BrokerError(
    'cage_refused',
    'launch refused: expected a uid for the tool apart from root, got an installation without one; run chio init as root',
  )
}
