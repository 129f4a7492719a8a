// Owns tool calls as an agent and its host make them: a token of the kernel's own issuer, a request under it, a context.
// Must never be reached from anything that ships.
import { randomUUID } from 'node:crypto'
import type { CallGuard } from '../../kernel/calls/evaluate-call.js'
import { systemClock } from '../../native/clock.js'
import {
  type CapabilityToken,
  type CapabilityTokenMembers,
  signCapabilityToken,
} from '../../protocol/capability-token.js'
import { unixSeconds } from '../../protocol/clock.js'
import type { InvocationContext } from '../../protocol/invocation-context.js'
import type { SigningKey } from '../../protocol/keys.js'
import type { ToolGrant } from '../../protocol/scope.js'
import type { ToolCallRequest } from '../../protocol/tool-call.js'
import type { CallAnswer, StartAnswer } from '../../protocol/tool-call-rpc.js'
import { makeTestKernel, type TestKernel, type TestKernelOptions } from './kernel.js'

const TOOL = { server_id: 'notes', tool_name: 'append' } as const

/** A kernel that knows one tool. */
export function callKernel(
  options: TestKernelOptions = {},
  guards: readonly CallGuard[] = [],
): Promise<TestKernel> {
  const targets = [{ serverId: TOOL.server_id, toolName: TOOL.tool_name }]
  return makeTestKernel({ ...options, toolCalls: { guards, targets } })
}

/** A token of the kernel's issuer to its caller; what differs is given. */
export function tokenOf(
  kernel: { readonly caller: SigningKey; readonly keys: { readonly issuer: SigningKey } },
  grant: Partial<ToolGrant> = {},
  changes: Partial<CapabilityTokenMembers> = {},
): CapabilityToken {
  const now = unixSeconds(systemClock)
  return signCapabilityToken(
    {
      expires_at: now + 3_600,
      id: `capability-${randomUUID()}`,
      issued_at: now - 1,
      issuer: kernel.keys.issuer.publicKey,
      scope: { grants: [{ ...TOOL, operations: ['invoke'], ...grant }] },
      subject: kernel.caller.publicKey,
      ...changes,
    },
    kernel.keys.issuer,
  )
}

export function callUnder(token: CapabilityToken, changes: Partial<ToolCallRequest> = {}): ToolCallRequest {
  return {
    capability_token: token,
    id: `call-${randomUUID()}`,
    params: { note: 'a needle in the arguments' },
    server_id: TOOL.server_id,
    tool: TOOL.tool_name,
    type: 'tool_call_request',
    ...changes,
  }
}

export function contextAt(generation: number, labels: readonly string[] = []): InvocationContext {
  return { generation, labels: [...labels], schema: 'chio.invocation-context.v1', session_id: 'session-1' }
}

export function preflight(kernel: TestKernel, request: ToolCallRequest): Promise<CallAnswer> {
  return kernel.client.call('call_preflight', { context: contextAt(1), request })
}

/** The second step of the sequence, under a refreshed context. */
export function reserveWith(
  kernel: TestKernel,
  request: ToolCallRequest,
  { executionNonce }: Pick<CallAnswer, 'executionNonce'>,
  context: InvocationContext = contextAt(2),
): Promise<CallAnswer> {
  return kernel.client.call('call_reserve', { context, executionNonce, request })
}

/** Preflight and reserve. */
export async function reservedCall(kernel: TestKernel, request: ToolCallRequest): Promise<CallAnswer> {
  return reserveWith(kernel, request, await preflight(kernel, request))
}

export function startWith(
  kernel: TestKernel,
  request: ToolCallRequest,
  { executionNonce }: Pick<CallAnswer, 'executionNonce'>,
): Promise<StartAnswer> {
  if (executionNonce === null) throw new RangeError('expected an answer with a nonce, got one without')
  return kernel.client.call('call_start', {
    arguments: request.params,
    context: contextAt(3),
    credentials: {},
    executionNonce,
  })
}

/** A call that was started under a pinned executor. */
export async function startedCall(kernel: TestKernel, request: ToolCallRequest = callUnder(tokenOf(kernel))) {
  const ready = await reservedCall(kernel, request)
  const start = await startWith(kernel, request, ready)
  const { authorization } = start
  if (authorization === null) throw new RangeError(`expected an authorization, got ${start.reason}`)
  return { authorization, operationId: ready.operationId, ready, request, start }
}
