// Owns: which tool calls a kernel admits at all: whose tokens it believes, which tools it knows, which guards it asks.
// Must never: know a tool that nobody registered: a kernel that was told nothing refuses every call by its target.
// Source: the trusted issuers and registered targets of the kernel's call surface.
import type { CallerExecutor } from '../../protocol/caller-authorization.js'
import type { PublicKey } from '../../protocol/keys.js'
import { pinnedExecutor } from '../delivery/caller-pin.js'
import type { CallPolicy } from './call-store.js'
import type { CallGuard } from './evaluate-call.js'
import type { KernelParts } from '../kernel-context.js'

/** What an embedding registers for tool calls. */
export interface ToolCallSettings {
  readonly targets: readonly { readonly serverId: string; readonly toolName: string }[]
  /** Beside the kernel's own issuer key. */
  readonly issuers?: readonly PublicKey[]
  readonly guards?: readonly CallGuard[]
}

export function callPolicyOf(
  { config, keys }: Pick<KernelParts, 'config' | 'keys'>,
  { guards = [], issuers = [], targets: given }: ToolCallSettings = { targets: [] },
  executor: CallerExecutor | null = pinnedExecutor(config),
): CallPolicy {
  const targets = [...given, ...(config.callerDelivery?.tools ?? [])]
  return {
    executor,
    guards,
    isDurable: config.durableMode !== 'off',
    isTarget: (serverId, toolName) =>
      targets.some(target => target.serverId === serverId && target.toolName === toolName),
    issuers: [keys.issuer.publicKey, ...issuers],
    nonceCapacity: config.nonce.capacity,
    nonceIssuer: keys.kernel.publicKey,
  }
}
