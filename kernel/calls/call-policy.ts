// Owns: which tool calls a kernel admits at all: whose tokens it believes, which tools it knows, which guards it asks.
// Must never: know a tool that nobody registered: a kernel that was told nothing refuses every call by its target.
// Source: the trusted issuers and registered targets of the kernel's call surface.
import type { CallerExecutor } from '../../protocol/caller-authorization.js'
import type { PublicKey } from '../../protocol/keys.js'
import { signProposal } from '../../protocol/threshold-proposal.js'
import { pinnedExecutor } from '../delivery/caller-pin.js'
import type { CallPolicy } from './call-store.js'
import type { CallGuard } from './evaluate-call.js'
import type { KernelParts } from '../kernel-context.js'

/** A tool that exists here, and how many approvers each call of it needs; none unless said. */
export interface CallTarget {
  readonly serverId: string
  readonly toolName: string
  readonly requiredApprovals?: number
}

/** What an embedding registers for tool calls. */
export interface ToolCallSettings {
  readonly targets: readonly CallTarget[]
  /** Beside the kernel's own issuer key. */
  readonly issuers?: readonly PublicKey[]
  readonly guards?: readonly CallGuard[]
}

export function callPolicyOf(
  { config, keys }: Pick<KernelParts, 'config' | 'keys'>,
  { guards = [], issuers = [], targets: given }: ToolCallSettings = { targets: [] },
  executor: CallerExecutor | null = pinnedExecutor(config),
): CallPolicy {
  const targets: readonly CallTarget[] = [...given, ...(config.callerDelivery?.tools ?? [])]
  const targetOf = (serverId: string, toolName: string) =>
    targets.find(target => target.serverId === serverId && target.toolName === toolName)
  return {
    approvals: {
      pins: { approvers: config.approvers, policyAuthority: keys.kernel.publicKey },
      propose: terms => signProposal(terms, keys.kernel),
      requiredOf: (serverId, toolName) => targetOf(serverId, toolName)?.requiredApprovals ?? 0,
    },
    executor,
    guards,
    isDurable: config.durableMode !== 'off',
    isTarget: (serverId, toolName) => targetOf(serverId, toolName) !== undefined,
    issuers: [keys.issuer.publicKey, ...issuers],
    nonceCapacity: config.nonce.capacity,
    nonceIssuer: keys.kernel.publicKey,
  }
}
