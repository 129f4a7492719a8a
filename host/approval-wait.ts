// Waits while approvers decide: the same request is reserved again, with a proof of its own time, until they agreed or
// the wait is over. A wait that is over gives the operation back; nothing was minted for it.
// Must never: make another request of it. Approvals are given to one operation, and the next would need them anew.
import { setTimeout as sleep } from 'node:timers/promises'
import type { BrokerRequest } from '../protocol/execute-request.js'
import { BrokerError, isBrokerError } from '../protocol/errors.js'
import { newInvocation, reserve, type ReservedOperation } from './admission.js'
import type { HostSession } from './session.js'
import { cancel } from './settlement.js'

/** People take seconds at least; the kernel makes no commit for a question. */
const BETWEEN_QUESTIONS_MS = 500

/** How long a run waits for its approvers, and who is told that it does. */
export interface ApprovalPatience {
  readonly isOver: () => boolean
  /** Told once, with the operation that waits. It must not throw. */
  readonly onAwaited?: ((operationId: string) => void) | undefined
}

/** @throws BrokerError `approval_required` when the wait is over, `approval_denied`, `approval_expired`. */
export async function reserveApproved(
  session: HostSession,
  exact: { readonly grantId: string; readonly request: BrokerRequest },
  { isOver, onAwaited }: ApprovalPatience,
): Promise<ReservedOperation> {
  const invocation = newInvocation()
  let isTold = false
  for (;;) {
    const waiting = await reserveUnlessAwaited(session, exact, invocation)
    if (typeof waiting !== 'string') return waiting
    if (isOver()) throw await givenBack(session, waiting)
    if (!isTold) onAwaited?.(waiting)
    isTold = true
    await sleep(BETWEEN_QUESTIONS_MS)
  }
}

/** The reservation, or the id of the operation that waits for its approvals. */
async function reserveUnlessAwaited(
  session: HostSession,
  { grantId, request }: { readonly grantId: string; readonly request: BrokerRequest },
  invocation: ReturnType<typeof newInvocation>,
): Promise<ReservedOperation | string> {
  try {
    return await reserve(session, request, grantId, invocation)
  } catch (error) {
    const isAwaited = isBrokerError(error) && error.code === 'approval_required'
    if (isAwaited && error.operationId !== undefined) return error.operationId
    throw error
  }
}

async function givenBack(session: HostSession, operationId: string): Promise<BrokerError> {
  await cancel(session, operationId).catch(() => undefined)
  return new BrokerError(
    'approval_required',
    `run refused: expected approvals of operation ${operationId} within the wait, got too few; it was taken back: run it again and give its approvers time: --wait 15m`,
    { operationId, outcome: 'not_started' },
  )
}
