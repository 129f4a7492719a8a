// Owns a test's kernel whose one tool asks for two approvals: calls that wait, what approvers say of them, and time that
// is held in the hand. Must never be reached from anything that ships.
import type { ApprovalMembers } from '../../protocol/approval-token.js'
import { unixSeconds } from '../../protocol/clock.js'
import type { ToolGrant } from '../../protocol/scope.js'
import type { ToolCallRequest } from '../../protocol/tool-call.js'
import { APPROVER_KEYS, type ApproverName, APPROVERS, wordOn } from './approvers.js'
import { HeldClock } from './clock.js'
import { makeTestKernel, type TestKernel, type TestKernelOptions } from './kernel.js'
import { callUnder, preflight, tokenOf } from './tool-call.js'

export interface CallApprovalWorld {
  readonly clock: HeldClock
  readonly kernel: TestKernel
  readonly options: TestKernelOptions
  token(grant?: Partial<ToolGrant>): ReturnType<typeof tokenOf>
  /** A call that waits. */
  waiting(request?: ToolCallRequest): Promise<{ operationId: string; request: ToolCallRequest }>
  say(operationId: string, who: ApproverName, changes?: Partial<ApprovalMembers>): Promise<{ state: string }>
  stateOf(operationId: string): Promise<string>
}

export async function openCallApprovals(
  requiredApprovals = 2,
  more: TestKernelOptions = {},
): Promise<CallApprovalWorld> {
  const clock = new HeldClock(Math.floor(Date.now() / 1_000) * 1_000)
  const targets = [{ requiredApprovals, serverId: 'notes', toolName: 'append' }]
  const options = { approvers: APPROVERS, clock, toolCalls: { targets }, ...more }
  const kernel = await makeTestKernel(options)
  // Time is held: a token of the machine's own clock would come from the future.
  const lives = { expires_at: unixSeconds(clock) + 3_600, issued_at: unixSeconds(clock) }
  const token = (grant: Partial<ToolGrant> = {}) => tokenOf(kernel, grant, lives)
  return {
    clock,
    kernel,
    options,
    token,
    async waiting(request = callUnder(token())) {
      const { operationId } = await preflight(kernel, request)
      return { operationId: operationId as string, request }
    },
    async say(operationId, who, changes = {}) {
      const shown = await kernel.client.call('approval_show', { operationId })
      const approval = wordOn(shown, APPROVER_KEYS[who], { clock, ...changes })
      return kernel.client.call('approval_submit', { approval, operationId })
    },
    async stateOf(operationId) {
      return (await kernel.client.call('inspect', { operationId })).state
    },
  }
}
