// Owns: the tools of the kernel's configuration: which there are, what their effect is, what is asked of their arguments
// and of what they return; and whose tokens may be used for them.
// Must never: know a tool twice. Source: the registered targets and trusted issuers of the kernel's call surface.
import { MAXIMUM_APPROVALS, MAXIMUM_PARAMETERS_BYTES } from '../../protocol/limits.js'
import { also, exactly, list, nullable, type Shaped, whole, word } from '../../protocol/shape.js'
import { atMost, id, jsonSchema, publicKey, yesOrNo } from '../config-values.js'

const MAXIMUM_TOOLS = 1_024
const MAXIMUM_ISSUERS = 64

/** What is asked of the arguments of a call before anything is held; null leaves one out. */
const guards = exactly({
  maximumArgumentBytes: nullable(whole(1, MAXIMUM_PARAMETERS_BYTES)),
  secretScan: yesOrNo,
  argumentSchema: jsonSchema,
})

const tool = exactly({
  serverId: id,
  toolName: id,
  effectClass: word('read_only', 'side_effecting', 'monetary'),
  /** Approvers who have to agree to each call; 0 asks nobody. */
  requiredApprovals: whole(0, MAXIMUM_APPROVALS),
  guards: nullable(guards),
  /** What its executor may report; null judges nothing. */
  outputSchema: jsonSchema,
})
export type ConfiguredTool = Shaped<typeof tool>

export const toolCalls = exactly({
  /** Keys whose capability tokens are believed, beside the kernel's own issuer key. */
  issuers: list(publicKey, { max: MAXIMUM_ISSUERS, expected: `issuer keys, at most ${MAXIMUM_ISSUERS}` }),
  tools: also(list(tool, atMost('tools', MAXIMUM_TOOLS)), isEachOnce, {
    expected: 'each tool of a server once',
  }),
})

function isEachOnce(tools: readonly ConfiguredTool[]): boolean {
  return (
    new Set(tools.map(({ serverId, toolName }) => JSON.stringify([serverId, toolName]))).size === tools.length
  )
}
