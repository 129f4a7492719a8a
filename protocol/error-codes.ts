// Owns the table of error codes: what the peer is told, how a command ends, what the operator does next.
// Codes are stable and never reused. `peerSees` is the only thing about a fault that crosses a trust
// line; null means that the connection closes without a byte.
// Source: the ten codes of the broker protocol; exit codes after sysexits.h (69, 73, 75).

import { CALLER_ERROR_CODES } from './caller-error-codes.js'
import { type ErrorCodeRow, row } from './error-code-row.js'
import { KERNEL_ERROR_CODES } from './kernel-error-codes.js'

export type { ErrorCodeRow }

export const ERROR_CODES = {
  // The broker protocol's own codes.
  invalid_request: row('invalid_request', 1, 'correct what the sentence names; nothing was acted on'),
  authorization_denied: row(
    'authorization_denied',
    1,
    'ask an administrator for what the sentence says is missing: a grant, a client, a key',
  ),
  authority_unavailable: row(
    'authority_unavailable',
    69,
    'see that broker and kernel serve, and that their clocks agree: chio status',
  ),
  conflict: row(
    'conflict',
    1,
    'see what stands there already, then ask again: chio status, chio operation list',
  ),
  invariant: row(null, 1, 'stop and report this: a program contradicts itself, or its records each other'),
  storage: row(
    null,
    1,
    'set right what the sentence names: a path, its permissions, the space or health of its disk',
  ),
  upstream: row(
    'upstream',
    1,
    'see why the provider is not reached, or for how long it is paused: chio status',
  ),
  response_rejected: row(
    'response_rejected',
    1,
    'read the receipt: the provider answered what the grant does not allow',
  ),
  custody: row(
    null,
    1,
    'set right what the sentence names: a file, a key, their owner, mode or links: chio doctor',
  ),
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
  deadline_expired: row(
    null,
    1,
    'run it again: a stream lives 30 seconds at most, a question to a daemon less',
  ),
  start_denied: row('authorization_denied', 1, 'the kernel refused the start; the hold was given back'),
  credential_unavailable: row(
    'authorization_denied',
    1,
    'provision or enable the credential version: chio credential list',
  ),
  credential_exists: row(null, 1, 'see what is stored: chio credential list'),

  ...KERNEL_ERROR_CODES,

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
  broker_unavailable: row(null, 69, 'start the broker: chio up, or its service; its log says why it ended'),
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
  kernel_unavailable: row(null, 69, 'start the kernel: chio up, or its service; its log says why it ended'),
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
  unsupported_platform: row(
    null,
    1,
    'run where the sentence asks for: Linux 5.10 or later, with what it lacks here',
  ),
  installation_missing: row(
    null,
    1,
    'make one: chio init; or name the folder of the one that you mean: --state',
  ),
  installation_exists: row(
    null,
    1,
    'use the one that is there: chio up; or name another folder with --state',
  ),
  installation_unfinished: row(
    null,
    1,
    'an init that did not finish left it, and nothing was stored with it yet: remove the folder and make it anew: chio init; one that served lost the named file: restore that',
  ),
  state_elsewhere: row(
    null,
    1,
    'use the installation where it was made, with --state; or make another one: chio init',
  ),
  store_missing: row(
    null,
    1,
    "a daemon's store is provisioned once: chio init; an executor's ledger is never made anew: restore it, nothing else knows what was done",
  ),
  store_replaced: row(
    null,
    1,
    'this is not the store that was provisioned; if its disk alone was renumbered: chio store adopt, for an executor chio ledger adopt',
  ),
  store_head_refused: row(
    null,
    1,
    'the signed head beside the store is not its own: put store, log and head of one moment back together',
  ),
  usage: row(null, 2, 'correct the command line: its --help names every option'),
} as const satisfies Record<string, ErrorCodeRow>

export type ErrorCode = keyof typeof ERROR_CODES
