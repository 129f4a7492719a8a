// Owns: what administrators do to the kernel's records besides grants: state what a provider really did, and accept
// the wall clock as it is.
// Must never: change the state of an operation, or let a clock be corrected without a signature.
// Source: the governed administrator authorization; the admission store's clock.
import type { AdminAuthorization } from '../protocol/administration.js'
import { encode } from '../protocol/codec.js'
import { BrokerError } from '../protocol/errors.js'
import { AcceptClock, type ClockView, Reconcile } from '../protocol/operation-rpc.js'
import { administer } from './administer-grants.js'
import type { AdminOutcome } from './admission-store.js'
import type { KernelContext } from './kernel-context.js'
import { assertFound } from './operation/move-rules.js'
import { LONGEST_DELIBERATION_MS } from './trusted-clock.js'

type Authorization = AdminAuthorization | null

/** @throws BrokerError `operation_unknown`; `operation_state` for one that was never dispatched. */
export async function reconcile(
  context: KernelContext,
  authorization: Authorization,
  stated: Reconcile,
): Promise<AdminOutcome> {
  const { operationId } = stated
  const operation = assertFound(await context.store.findOperation(operationId))
  if (operation.commit === null) {
    throw new BrokerError(
      'operation_state',
      `statement refused: expected an operation that was dispatched, got ${operation.state}; nothing was sent`,
      { operationId },
    )
  }
  const request = { operation: 'reconcile', payload: encode(Reconcile, stated) }
  return administer(context, authorization, request, admin => context.store.reconcile(stated, admin))
}

/** @throws BrokerError `conflict` when the kernel's clock is no longer what the administrator looked at. */
export function acceptClock(
  context: KernelContext,
  authorization: Authorization,
  accepted: AcceptClock,
): Promise<AdminOutcome> {
  const request = { operation: 'accept_clock', payload: encode(AcceptClock, accepted) }
  return administer(context, authorization, request, admin => {
    const sinceMs = context.clock.unixMs() - accepted.wallUnixMs
    if (sinceMs < 0 || sinceMs > LONGEST_DELIBERATION_MS) {
      throw new BrokerError(
        'conflict',
        `clock correction refused: expected the wall clock that was looked at, got one ${sinceMs} ms away; look again: chio clock show`,
      )
    }
    return context.store.acceptClock(accepted, admin)
  })
}

export function showClock({ store }: KernelContext): Promise<ClockView> {
  return store.readClock()
}
