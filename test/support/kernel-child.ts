// Owns kernels in processes of their own, which end themselves at a named cutpoint. They run the compiled parts;
// seeds travel by argument here, which only a test may do.
import type { CallerExecutor } from '../../protocol/caller-authorization.js'
import { toHex } from '../../protocol/digest.js'
import type { ToolCallSettings } from '../../kernel/calls/call-policy.js'
import type { KernelConfig } from '../../kernel/config.js'
import { type CompiledChild, startChild } from './compiled-child.js'

const SCRIPT = `
const { startKernel } = await compiled('kernel/start-kernel')
const { signingKey } = await compiled('protocol/keys')
const { systemClock } = await compiled('native/clock')
const [document, seeds, cutpoint, toolCalls] = [JSON.parse(args[0]), JSON.parse(args[1]), args[2], JSON.parse(args[3])]
const { executor: callerExecutor, targets } = toolCalls
const seed = name => Buffer.from(seeds[name], 'hex')
const records = { replay: async () => 'unreachable', release: async () => 'unreachable', attemptStatus: async () => 'unreachable' }
try {
  const running = await startKernel({
    clock: systemClock, config: document, records, callerExecutor, toolCalls: { targets },
    keys: { kernel: signingKey(seed('kernel')), authority: signingKey(seed('authority')),
      issuer: signingKey(seed('issuer')), storage: seed('storage') },
    atCutpoint: name => { if (name === cutpoint) process.kill(process.pid, 'SIGKILL') },
  })
  say({ ownerEpoch: running.ownerEpoch })
} catch (error) {
  say({ code: error.code, sentence: error.message })
  process.exit(1)
}
`

export type KernelSeeds = Readonly<Record<'kernel' | 'authority' | 'issuer' | 'storage', Uint8Array>>

/** What a kernel in a process of its own admits tool calls for, and to whom it delivers them. */
export interface ChildCalls {
  readonly executor: CallerExecutor | null
  readonly targets: ToolCallSettings['targets']
}

/** Resolves when it serves, or with its refusal. @param cutpoint where the process ends itself, if anywhere. */
export async function startKernelChild(
  config: KernelConfig,
  seeds: KernelSeeds,
  cutpoint = '',
  calls: ChildCalls = { executor: null, targets: [] },
): Promise<{ child: CompiledChild; said: Record<string, unknown> }> {
  const hex = Object.fromEntries(Object.entries(seeds).map(([name, bytes]) => [name, toHex(bytes)]))
  const child = startChild(SCRIPT, [
    JSON.stringify(config),
    JSON.stringify(hex),
    cutpoint,
    JSON.stringify(calls),
  ])
  return { child, said: await child.next() }
}
