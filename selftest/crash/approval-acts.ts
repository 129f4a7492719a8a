// Owns the rows about approvals: a request that has to wait for its approver, and the approver's word on it.
// Must never: take the answer to a reserve for a record; what waits is asked of the kernel anew.
import { randomUUID } from 'node:crypto'
import { buildRequest, newInvocation, reserve } from '../../host/admission.js'
import { unixSeconds } from '../../protocol/clock.js'
import type { ApprovalCase } from '../../protocol/approval-rpc.js'
import { BrokerError, isBrokerError } from '../../protocol/errors.js'
import type { Grant } from '../../protocol/grant.js'
import { answerProposal } from '../../protocol/threshold-proposal.js'
import { type CrashWorld, TIMEOUT_MS } from './crash-world.js'

export interface ApprovalActs {
  readonly ask: () => Promise<unknown>
  readonly isDone: () => Promise<boolean>
}

/** A request under a grant that asks for one approval; done once it waits. */
export function announceActs(world: CrashWorld, grant: Grant): ApprovalActs {
  const invocation = newInvocation()
  const { invocationId } = invocation
  const requested = {
    body: Buffer.from(invocationId),
    grantId: grant.grantId,
    headers: [],
    timeoutMs: TIMEOUT_MS,
  }
  const request = buildRequest(grant, requested)
  return {
    ask: () => awaited(reserve(world.session, request, grant.grantId, invocation)),
    isDone: async () => {
      const { approvals } = await world.session.kernel.call('approval_list', { limit: 1_000 })
      return approvals.some(view => view.invocationId === invocationId)
    },
  }
}

/** The approver's word on a request that waits already. */
export async function approveActs(world: CrashWorld, grant: Grant): Promise<ApprovalActs> {
  const { kernel } = world.session
  const operationId = (await announceActs(world, grant).ask()) as string
  const show = () => kernel.call('approval_show', { operationId })
  return {
    ask: async () => kernel.call('approval_submit', { approval: wordOn(world, await show()), operationId }),
    isDone: async () => (await show()).view.approved === 1,
  }
}

/** A reserve that waits is refused by design. @returns the operation that waits. */
async function awaited(reserving: Promise<unknown>): Promise<string> {
  try {
    await reserving
  } catch (error) {
    const isAwaited = isBrokerError(error) && error.code === 'approval_required'
    if (isAwaited && error.operationId !== undefined) return error.operationId
    throw error
  }
  throw new BrokerError(
    'invariant',
    'crash run refused: expected a request that waits for approval, got an answer',
  )
}

function wordOn({ approver, session }: CrashWorld, { proposal }: Pick<ApprovalCase, 'proposal'>) {
  const id = `approval-${randomUUID()}`
  const answer = { decision: 'approved', id, nowUnixSeconds: unixSeconds(session.clock) } as const
  return answerProposal(proposal.body, answer, approver)
}
