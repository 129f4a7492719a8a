// Owns the table of error codes: what the peer is told, how a command ends, what the operator does next.
// Codes are stable and never reused. `peerSees` is the only thing about a fault that crosses a trust
// line; null means that the connection closes without a byte.
// Source: the ten codes of the broker protocol; exit codes after sysexits.h (69, 73, 75).

import { CALLER_ERROR_CODES } from './caller-error-codes.js'
import { type ErrorCodeRow, row } from './error-code-row.js'

export type { ErrorCodeRow } from './error-code-row.js'

export const ERROR_CODES = {
  // The broker protocol's own codes.
  invalid_request: row('invalid_request', 1, 'correct what the sentence names; nothing was acted on'),
  authorization_denied: row(
    'authorization_denied',
    1,
    'ask an administrator for a grant that covers this request',
  ),
  authority_unavailable: row('authority_unavailable', 69, 'see that the kernel serves: chio status'),
  conflict: row('conflict', 1, 'see who holds the slot, or what is recorded: chio status'),
  invariant: row(null, 1, 'stop and report this: the daemon found its own records in disagreement'),
  storage: row(null, 1, 'check disk space, permissions and the health of the state directory: chio doctor'),
  upstream: row('upstream', 1, 'check that the provider can be reached from this machine'),
  response_rejected: row(
    'response_rejected',
    1,
    'read the receipt: the provider answered what the grant does not allow',
  ),
  custody: row(null, 1, 'check the owner, mode and links of the named key or credential: chio doctor'),
  clock: row('clock', 1, 'correct the system clock: chio doctor shows what it reads'),

  // The broker's own additions: attempts and outcomes.
  attempt_pending: row(
    'attempt_pending',
    75,
    'the attempt has not ended: wait, then read its outcome again: chio operation outcome',
  ),
  attempt_unknown: row(
    'attempt_unknown',
    1,
    'the broker holds no record of this attempt: nothing was dispatched',
  ),
  outcome_undetermined: row(null, 75, 'never run it again before its record is read: chio operation outcome'),
  outcome_unknown: row(
    'outcome_unknown',
    75,
    'never run it again: ask the provider what it did; the record stands: chio operation outcome',
  ),
  interrupted: row(null, 1, 'nothing was started: run it again when you want to'),
  broker_restarted: row(
    'authorization_denied',
    1,
    'the broker restarted before anything was sent: run it again',
  ),
  deadline_expired: row(null, 1, 'prepare again; the stream lives 30 seconds at most'),
  start_denied: row('authorization_denied', 1, 'the kernel refused the start; the hold was given back'),
  credential_unavailable: row(
    'authorization_denied',
    1,
    'provision or enable the credential version: chio credential list',
  ),
  credential_exists: row(null, 1, 'see what is stored: chio credential list'),

  // The kernel's own refusals: operations, grants, execution nonces.
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
  attachment_forbidden: row(
    null,
    1,
    'stop and report this: the kernel attached to an operation what it does not support',
  ),
  attachment_missing: row(null, 1, 'stop and report this: the kernel tried a move without what it rests on'),
  stale_version: row('conflict', 1, 'reread the operation, then choose its next move: chio operation show'),
  clock_jumped: row('clock', 1, 'correct the system clock, or sign that it is right: chio clock accept'),
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

  ...CALLER_ERROR_CODES,

  // The stream, its frames and its peers.
  prepared_stream_consumed: row(
    null,
    1,
    'a prepared stream serves one submit or one handoff: prepare another',
  ),
  not_a_prepared_stream: row(
    null,
    1,
    'run the tool under chio run, which hands it the stream as descriptor 8',
  ),
  truncated_frame: row(null, 1, 'the peer ended inside a frame: read the recorded outcome'),
  client_gone: row(null, 1, 'the peer left before its answer; what was done stands in its record'),
  peer_mismatch: row(
    null,
    1,
    'another process answers on this socket: check pins and socket owners with chio doctor',
  ),
  broker_unavailable: row(null, 69, 'start the broker: chio up'),
  broker_stopping: row(
    'broker_stopping',
    69,
    'run it again when the broker serves again: nothing of it was taken up',
  ),
  kernel_stopping: row(
    'kernel_stopping',
    69,
    'run it again when the kernel serves again: nothing of it was taken up',
  ),
  kernel_unavailable: row(null, 69, 'start the kernel: chio up'),
  activation_refused: row(null, 1, 'make the .socket unit name exactly the sockets of the configuration'),
  another_instance: row(null, 73, 'another process serves this store: stop it first'),

  // Keys and signatures.
  weak_key: row(
    'invalid_request',
    1,
    'make a new key: this one has small or mixed order and signs nothing reliably',
  ),
  invalid_key: row('invalid_request', 1, 'give an ed25519 public key as 64 lower-case hex digits'),
  unsupported_key: row('invalid_request', 1, 'use an ed25519 key; other algorithms are not accepted'),

  // The kernel's receipts, its log and exports of it, as whoever verifies them is told.
  receipt_refused: row(
    null,
    1,
    'do not rely on it: signature, id, signer or action differ from what the pinned kernel signed',
  ),
  output_unavailable: row(
    'authority_unavailable',
    69,
    'see that the broker serves: chio status; the kernel judges the output when it has it',
  ),
  receipt_unknown: row(
    'authorization_denied',
    1,
    'name a receipt or an operation of your own: chio operation list',
  ),
  receipt_old_form: row(
    null,
    1,
    'give the receipt in its current form, whose id is the digest of its body; the old one binds no id',
  ),
  log_refused: row(
    null,
    1,
    'do not rely on what follows the named place: export the log anew, and compare with an earlier export',
  ),

  // Cage, machine, configuration.
  cage_refused: row(null, 1, 'read the named layer; nothing was launched: chio doctor'),
  tool_refused: row(null, 1, 'check the path of the tool, its mode and its first line; nothing was reserved'),
  handoff_failed: row(null, 75, 'the stream is closed; read the recorded outcome: chio operation outcome'),
  hostile_environment: row(null, 1, 'unset the named variable or option and start again'),
  invalid_configuration: row(
    null,
    1,
    'correct the named member of the configuration: chio doctor checks the whole',
  ),
  unsupported_platform: row(null, 1, 'run on Linux 5.10 or later'),
  installation_exists: row(
    null,
    1,
    'use the one that is there: chio up; or name another folder with --state',
  ),
  store_missing: row(null, 1, 'provision the store once: chio init'),
  store_replaced: row(
    null,
    1,
    'this is not the store that was provisioned; if its disk alone was renumbered: chio store adopt',
  ),
  store_head_refused: row(
    null,
    1,
    'the signed head beside the store is not its own: put store, log and head of one moment back together',
  ),
  usage: row(null, 2, 'correct the command line: its --help names every option'),
} as const satisfies Record<string, ErrorCodeRow>

export type ErrorCode = keyof typeof ERROR_CODES
