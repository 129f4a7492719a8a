// Owns the codes of the kernel's own refusals: operations, grants, approvals, capability tokens, execution nonces.
// Stable and never reused, as all of error-codes.ts, of which they are a part.
// Source: the kernel's admission protocol and the execution nonce profile.
import { type ErrorCodeRow, row } from './error-code-row.js'

export const KERNEL_ERROR_CODES = {
  request_binding_mismatch: row(
    'conflict',
    1,
    'this invocation id belongs to another request: give the changed request an id of its own',
  ),
  operation_unknown: row(
    'authorization_denied',
    1,
    'the kernel holds no such operation: chio operation list',
  ),
  operation_state: row(
    'conflict',
    1,
    'the operation stands in another state: read it with chio operation show',
  ),
  operation_shares_arguments: row(
    'conflict',
    1,
    'see what became of the other operation first: chio explain',
  ),
  illegal_transition: row(
    null,
    1,
    'stop and report this: the kernel tried a move that its own table forbids',
  ),
  fenced: row(null, 73, 'another kernel took this store over: this process writes no more'),
  grant_unknown: row('authorization_denied', 1, 'name a grant that the kernel holds: chio capability list'),
  grant_revoked: row('authorization_denied', 1, 'ask an administrator for a new grant'),
  grant_expired: row('authorization_denied', 1, 'ask an administrator for a new grant'),
  grant_exhausted: row(
    'authorization_denied',
    1,
    'ask an administrator for another grant: chio capability issue',
  ),
  grant_exceeded: row('authorization_denied', 1, 'keep the request within the bounds of the grant'),
  approval_required: row('authorization_denied', 75, 'ask its approvers, then repeat it: chio approval list'),
  approval_unavailable: row('authorization_denied', 1, "name enough approvers in the kernel's configuration"),
  approval_denied: row('authorization_denied', 1, 'an approver said no: ask why before you ask again'),
  approval_mismatch: row(
    'authorization_denied',
    1,
    'read the operation again and approve exactly it: chio approval show',
  ),
  approval_expired: row('authorization_denied', 1, 'run it again and have it approved in time'),
  approval_repeated: row('conflict', 1, 'let another approver speak: each counts once'),
  capability_denied: row(
    'authorization_denied',
    1,
    'present a token of a trusted issuer that covers this call',
  ),
  capability_expired: row('authorization_denied', 1, 'ask its issuer for a new capability token'),
  capability_revoked: row('authorization_denied', 1, 'ask its issuer for a new capability token'),
  possession_denied: row(
    'authorization_denied',
    1,
    'sign a proof of possession for exactly this call with the key of its token, and start with it',
  ),
  possession_replayed: row(
    'authorization_denied',
    1,
    'sign a fresh proof of possession: each starts one call',
  ),
  guard_denied: row('authorization_denied', 1, 'read the reason: a guard of this kernel refuses the call'),
  context_stale: row('conflict', 1, 'refresh the invocation context from its session, then ask again'),
  executor_unpinned: row(
    'authority_unavailable',
    69,
    'pin an executor in the configuration of the kernel; the operation stays as it is',
  ),
  executor_changed: row(
    'conflict',
    1,
    'pin the executor again under which the operation was admitted; it stays as it is until then',
  ),
  log_broken: row(
    null,
    1,
    'the store was changed by another program: put the newest whole copy back, and verify what was exported: chio audit verify',
  ),
  attachment_forbidden: row(
    null,
    1,
    'stop and report this: the kernel attached to an operation what it does not support',
  ),
  attachment_missing: row(null, 1, 'stop and report this: the kernel tried a move without what it rests on'),
  stale_version: row('conflict', 1, 'reread the operation, then choose its next move: chio operation show'),
  clock_jumped: row(
    'clock',
    1,
    'correct the system clock, or sign that it is right: chio clock accept, for an executor chio ledger accept-clock',
  ),
  execution_nonce_schema: row(
    'authorization_denied',
    1,
    'present a nonce of the second profile, which is bound to its operation',
  ),
  execution_nonce_window: row(
    'authorization_denied',
    1,
    'present the nonce as the kernel signed it: it ends after its issue',
  ),
  execution_nonce_signature: row(
    'authorization_denied',
    1,
    'present the nonce that this kernel signed for this operation',
  ),
  execution_nonce_replayed: row(
    'authorization_denied',
    1,
    'reserve anew: a nonce is reserved once and ends once',
  ),
  execution_nonce_encoding: row(
    'invalid_request',
    1,
    'present the exact bytes of the nonce, at most 16,384 of them',
  ),
  execution_nonce_not_adopted: row(
    'authorization_denied',
    1,
    'the kernel that reserved it has ended: cancel the operation and reserve anew',
  ),
  execution_nonce_binding: row(
    'authorization_denied',
    1,
    'present the nonce that was reserved for this operation',
  ),
  execution_nonce_expired: row(
    'authorization_denied',
    1,
    'reserve anew: an execution nonce lives for seconds',
  ),
  execution_nonce_not_yet_valid: row(
    'authorization_denied',
    1,
    'correct the system clock: it stepped backwards',
  ),
  execution_nonce_capacity: row('authority_unavailable', 69, 'wait for reservations to be used or to expire'),
} as const satisfies Record<string, ErrorCodeRow>
