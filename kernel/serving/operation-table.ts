// Owns: which request of the host socket goes where: a table, closed by default.
// Must never: decide anything itself. A kind that stands in no row does not compile.
// Source: the kernel's host socket (`chio.kernel-rpc.v1`).
import type { AdminAuthorization } from '../../protocol/administration.js'
import type { KernelOperation, KernelOperationKind, KernelResult } from '../../protocol/kernel-rpc.js'
import type { Kernel, RequestOf, ResponseOf } from '../kernel.js'
import type { Caller } from '../kernel-context.js'

interface Call<K extends KernelOperationKind> {
  readonly kernel: Kernel
  readonly caller: Caller
  readonly authorization: AdminAuthorization | null
  readonly request: RequestOf<K>
}

type Handlers = { readonly [K in KernelOperationKind]: (call: Call<K>) => Promise<ResponseOf<K>> }

const HANDLERS: Handlers = {
  approval_list: ({ caller, kernel, request }) => kernel.listApprovals(caller, request),
  approval_show: ({ caller, kernel, request }) => kernel.showApproval(caller, request),
  approval_submit: ({ kernel, request }) => kernel.submitApproval(request),
  accept_clock: ({ authorization, kernel, request }) => kernel.acceptClock(authorization, request),
  authorize_registration: ({ caller, kernel, request }) => kernel.authorizeRegistration(caller, request),
  authorize_release: ({ caller, kernel, request }) => kernel.authorizeRelease(caller, request),
  call_preflight: ({ caller, kernel, request }) => kernel.calls.preflight(caller, request),
  call_reconcile: ({ caller, kernel, request }) => kernel.calls.reconcile(caller, request),
  call_reserve: ({ caller, kernel, request }) => kernel.calls.reserve(caller, request),
  call_start: ({ caller, kernel, request }) => kernel.calls.start(caller, request),
  cancel: ({ caller, kernel, request }) => kernel.cancel(caller, request),
  explain: ({ caller, kernel, request }) => kernel.explain(caller, request),
  finalize: ({ caller, kernel, request }) => kernel.finalize(caller, request),
  inspect: ({ caller, kernel, request }) => kernel.inspect(caller, request),
  issue_grant: ({ authorization, kernel, request }) => kernel.issueGrant(authorization, request),
  list: ({ caller, kernel, request }) => kernel.list(caller, request),
  list_grants: ({ caller, kernel, request }) => kernel.listGrants(caller, request),
  preparation_failed: ({ caller, kernel, request }) => kernel.preparationFailed(caller, request),
  read_checkpoints: ({ caller, kernel, request }) => kernel.readCheckpoints(caller, request),
  read_log: ({ caller, kernel, request }) => kernel.readLog(caller, request),
  reconcile: ({ authorization, kernel, request }) => kernel.reconcile(authorization, request),
  reserve: ({ caller, kernel, request }) => kernel.reserve(caller, request),
  revoke_capability: ({ authorization, kernel, request }) => kernel.revokeCapability(authorization, request),
  revoke_grant: ({ authorization, kernel, request }) => kernel.revokeGrant(authorization, request),
  seal_log: ({ caller, kernel }) => kernel.sealLog(caller),
  show_clock: ({ kernel }) => kernel.showClock(),
  show_grant: ({ caller, kernel, request }) => kernel.showGrant(caller, request),
  show_receipt: ({ caller, kernel, request }) => kernel.showReceipt(caller, request),
  start: ({ caller, kernel, request }) => kernel.start(caller, request),
  status: ({ kernel }) => kernel.status(),
}

/** For the page that describes them. */
export const HANDLED_KINDS = Object.keys(HANDLERS) as readonly KernelOperationKind[]

export async function answerOperation(
  kernel: Kernel,
  caller: Caller,
  operation: KernelOperation,
  authorization: AdminAuthorization | null,
): Promise<KernelResult> {
  const { kind, request } = operation
  // The table pairs every kind with the handler of its own request; the union cannot say so.
  const handle = HANDLERS[kind] as (call: Call<KernelOperationKind>) => Promise<unknown>
  const response = await handle({ authorization, caller, kernel, request })
  return { kind, response } as KernelResult
}
