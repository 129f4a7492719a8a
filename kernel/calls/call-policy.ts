// Owns: which tool calls a kernel admits at all: whose tokens it believes, which tools it knows, which guards it asks.
// Must never: know a tool that nobody registered: a kernel that was told nothing refuses every call by its target.
// Source: the trusted issuers and registered targets of the kernel's call surface.
import type { CallerExecutor } from '../../protocol/caller-authorization.js'
import { BrokerError } from '../../protocol/errors.js'
import type { PublicKey } from '../../protocol/keys.js'
import { MAXIMUM_CALL_GUARDS_COUNT } from '../../protocol/limits.js'
import { signProposal } from '../../protocol/threshold-proposal.js'
import { pinnedExecutor } from '../delivery/caller-pin.js'
import type { ConfiguredTool } from './call-config.js'
import type { CallPolicy, KnownTool } from './call-store.js'
import type { CallGuard } from './evaluate-call.js'
import type { KernelParts } from '../kernel-context.js'
import { argumentGuardsOf, outputGuardsOf } from './tool-guards.js'

/** A tool that an embedding registers; what it does not say asks nothing, and has a side effect. */
export type RegisteredTool = Pick<ConfiguredTool, 'serverId' | 'toolName'> & Partial<ConfiguredTool>

/** What an embedding registers for tool calls, beside what the configuration names. */
export interface ToolCallSettings {
  readonly targets: readonly RegisteredTool[]
  /** Beside the kernel's own issuer key. */
  readonly issuers?: readonly PublicKey[]
  /** Over every call, after those of its tool. */
  readonly guards?: readonly CallGuard[]
}

/**
 * @throws BrokerError `invalid_configuration` for a tool that is registered twice, needs more approvals than there are
 * approvers, or has more guards than a call may.
 */
export function callPolicyOf(
  { config, keys }: Pick<KernelParts, 'config' | 'keys'>,
  { guards = [], issuers = [], targets }: ToolCallSettings = { targets: [] },
  executor: CallerExecutor | null = pinnedExecutor(config),
): CallPolicy {
  const configured = config.toolCalls ?? { issuers: [], tools: [] }
  const tools = knownTools([...configured.tools, ...targets], {
    approversCount: config.approvers.length,
    commonGuardsCount: guards.length,
  })
  return {
    approvals: {
      pins: { approvers: config.approvers, policyAuthority: keys.kernel.publicKey },
      propose: terms => signProposal(terms, keys.kernel),
      requiredOf: (serverId, toolName) => tools.get(nameOf(serverId, toolName))?.requiredApprovals ?? 0,
    },
    executor,
    guards,
    isDurable: config.durableMode !== 'off',
    issuers: [keys.issuer.publicKey, ...configured.issuers, ...issuers],
    nonceCapacity: config.nonce.capacity,
    nonceIssuer: keys.kernel.publicKey,
    toolOf: (serverId, toolName) => tools.get(nameOf(serverId, toolName)),
  }
}

function knownTools(
  registered: readonly RegisteredTool[],
  {
    approversCount,
    commonGuardsCount,
  }: { readonly approversCount: number; readonly commonGuardsCount: number },
): ReadonlyMap<string, KnownTool> {
  const tools = new Map<string, KnownTool>()
  for (const {
    effectClass = 'side_effecting',
    guards = null,
    outputSchema = null,
    requiredApprovals = 0,
    serverId,
    toolName,
  } of registered) {
    const name = nameOf(serverId, toolName)
    if (tools.has(name)) twice(serverId, toolName)
    if (requiredApprovals > approversCount) {
      tooFew(`${toolName} on ${serverId}`, { approversCount, requiredApprovals })
    }
    const own = argumentGuardsOf({ guards })
    if (own.length + commonGuardsCount > MAXIMUM_CALL_GUARDS_COUNT) {
      tooMany(`${toolName} on ${serverId}`, own.length + commonGuardsCount)
    }
    tools.set(name, {
      effectClass,
      guards: own,
      outputGuards: outputGuardsOf({ outputSchema }),
      requiredApprovals,
    })
  }
  return tools
}

function nameOf(serverId: string, toolName: string): string {
  return JSON.stringify([serverId, toolName])
}

function twice(serverId: string, toolName: string): never {
  throw new BrokerError(
    'invalid_configuration',
    `tool ${toolName} on ${serverId} refused: expected it registered once, got it twice`,
  )
}

/** Every call of it would be refused, whoever asks. */
function tooFew(
  tool: string,
  { approversCount, requiredApprovals }: { approversCount: number; requiredApprovals: number },
): never {
  throw new BrokerError(
    'invalid_configuration',
    `tool ${tool} refused: expected at least ${requiredApprovals} approvers for its requiredApprovals, got ${approversCount}`,
  )
}

/** Such a call would be denied at its start only, when its record has no room for what they all said. */
function tooMany(tool: string, count: number): never {
  throw new BrokerError(
    'invalid_configuration',
    `tool ${tool} refused: expected at most ${MAXIMUM_CALL_GUARDS_COUNT} guards over a call of it, got ${count}`,
  )
}
