// Owns the rows about tool calls: an agent's call that is prepared, made ready and delivered, and the end of its token.
// The steered kernel knows one tool, and one executor.
// Must never: take an answer for a record; where a call stands is asked of the kernel anew.
import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { Administrator } from '../../client/administrator.js'
import { unixSeconds } from '../../protocol/clock.js'
import { type CapabilityToken, signCapabilityToken } from '../../protocol/capability-token.js'
import { signingKey } from '../../protocol/keys.js'
import type { ToolCallRequest } from '../../protocol/tool-call.js'
import type { CallAnswer } from '../../protocol/tool-call-rpc.js'
import type { CrashWorld } from './crash-world.js'
import { reportActs, startActs } from './delivery-acts.js'

/** The tool that the steered kernel admits calls of. */
export const CRASH_TOOL = { serverId: 'crash', toolName: 'call' } as const
const TOKEN_SECONDS = 3_600

export interface CallActs {
  readonly ask: () => Promise<unknown>
  readonly isDone: () => Promise<boolean>
}

/** What is asked at a row, with everything that has to stand before. */
export async function callActs(world: CrashWorld, row: string, by: Administrator): Promise<CallActs> {
  const request = newCall(world)
  const standsAs = (state: string) => async () => (await preflight(world, request)).state === state
  switch (row.split('.')[1]) {
    case 'revoke_capability':
    case 'capability_revoked':
      return {
        ask: () => by.revokeCapability(request.capability_token.id),
        isDone: async () => (await preflight(world, request)).code === 'capability_revoked',
      }
    case 'call_reserve':
    case 'call_reserved': {
      const prepared = await preflight(world, request)
      const ask = async () => allowed(await reserve(world, request, prepared))
      return { ask, isDone: standsAs('ready_to_dispatch') }
    }
    case 'call_start':
    case 'call_started':
    case 'call_authorized':
      return startActs(world, { ready: await readied(world, request), request })
    case 'call_reconcile':
    case 'call_returned':
    case 'call_finished':
      return reportActs(world, { ready: await readied(world, request), request })
    default:
      return {
        ask: async () => allowed(await preflight(world, request)),
        isDone: () => isKnown(world, request.id),
      }
  }
}

async function readied(world: CrashWorld, request: ToolCallRequest): Promise<CallAnswer> {
  return allowed(await reserve(world, request, await preflight(world, request)))
}

/** A denial is an answer; here it would be taken for what was asked. */
function allowed(answer: CallAnswer): CallAnswer {
  if (answer.verdict === 'allow') return answer
  throw new RangeError(`call: expected one that is allowed, got ${answer.reason}`)
}

function preflight({ session }: CrashWorld, request: ToolCallRequest): Promise<CallAnswer> {
  return session.kernel.call('call_preflight', { context: contextAt(1), request })
}

function reserve(
  { session }: CrashWorld,
  request: ToolCallRequest,
  { executionNonce }: CallAnswer,
): Promise<CallAnswer> {
  return session.kernel.call('call_reserve', { context: contextAt(2), executionNonce, request })
}

async function isKnown({ session }: CrashWorld, requestId: string): Promise<boolean> {
  const { operations } = await session.kernel.call('list', { limit: 1_000 })
  return operations.some(({ invocationId }) => invocationId === requestId)
}

function contextAt(generation: number) {
  return { generation, labels: [], schema: 'chio.invocation-context.v1', session_id: 'crash' } as const
}

function newCall(world: CrashWorld): ToolCallRequest {
  return {
    capability_token: tokenOf(world),
    id: `call-${randomUUID()}`,
    params: { note: 'crash' },
    server_id: CRASH_TOOL.serverId,
    tool: CRASH_TOOL.toolName,
    type: 'tool_call_request',
  }
}

/** Signed with the kernel's own issuer key: the run owns the whole installation. */
function tokenOf({ session, trial }: CrashWorld): CapabilityToken {
  const issuer = signingKey(readFileSync(trial.layout.kernel.keys.issuer))
  const now = unixSeconds(session.clock)
  const grant = {
    max_invocations: 1,
    operations: ['invoke' as const],
    server_id: CRASH_TOOL.serverId,
    tool_name: CRASH_TOOL.toolName,
  }
  return signCapabilityToken(
    {
      expires_at: now + TOKEN_SECONDS,
      id: `capability-${randomUUID()}`,
      // The kernel's clock is steered, and this one may be a moment ahead of it.
      issued_at: now - TOKEN_SECONDS,
      issuer: issuer.publicKey,
      scope: { grants: [grant] },
      subject: session.caller.publicKey,
    },
    issuer,
  )
}
