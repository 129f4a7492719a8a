// Owns the rows of the refusal table for what ends before the slot is claimed: the attempt stays what it was.
// Must never: have a row that ends an attempt.
// Source: the broker protocol, sections 2.4 and 9.
import { kept, type RefusalRow, silent } from './refusal-row.js'

export const BEFORE_CLAIM = {
  // Before a request is known.
  peer_denied: silent('connector', 'a configured client uid and gid', ['connection'], 'authorization_denied'),
  connection_capacity: silent(
    'connection count',
    'room for one more connection',
    ['connection'],
    'authority_unavailable',
  ),
  connection_dropped: silent(
    'silent connection',
    'a complete request before its place was needed',
    ['connection'],
    'authority_unavailable',
  ),
  frame_refused: silent(
    'request frame',
    'one complete frame within its limit and time',
    ['connection'],
    'invalid_request',
  ),
  envelope_malformed: silent('request envelope', 'the canonical envelope', ['connection'], 'invalid_request'),
  tenant_mismatch: silent('tenant scope', "this broker's tenant", ['connection'], 'authorization_denied'),
  authorization_missing: silent(
    'authorization',
    'the bytes that this operation demands',
    ['connection', 'request'],
    'authorization_denied',
  ),
  document_malformed: silent(
    'payload of a preparation or replay',
    'the canonical document of this operation',
    ['request', 'preparation'],
    'invalid_request',
  ),
  operation_unknown: silent('operation', 'an operation of the protocol', ['connection'], 'invalid_request'),

  // Ordinary operations, and what precedes the claim of the slot.
  call_capacity: kept(
    'calls under way',
    'room for one more call of this connector',
    ['request'],
    'authority_unavailable',
  ),
  operation_unserved: kept(
    'operation',
    'an operation that this broker serves',
    ['request'],
    'invalid_request',
  ),
  broker_closing: kept(
    'operation',
    'a broker that is not stopping',
    ['request', 'preparation'],
    'broker_stopping',
  ),
  payload_malformed: kept(
    'payload',
    'the canonical document of this operation',
    ['request'],
    'invalid_request',
  ),
  registration_refused: kept(
    'registration',
    'the one derived from this exact request',
    ['request', 'preparation'],
    'invalid_request',
  ),
  authorization_refused: kept(
    'registration authorization',
    "the authority's signature over this registration and action, in time",
    ['request', 'preparation'],
    'authorization_denied',
  ),
  caller_key_mismatch: kept(
    'caller key',
    'a capability of this connector',
    ['request', 'preparation'],
    'authorization_denied',
  ),
  request_unfit: kept(
    'execute request',
    'a request that this broker may execute now',
    ['request'],
    'authorization_denied',
  ),
  administrator_refused: kept(
    'administrator approval',
    'approvals of exactly this request',
    ['request'],
    'authorization_denied',
  ),
  administrator_conflict: kept(
    'administrator approval',
    'approvals that were not spent on another request',
    ['request'],
    'conflict',
  ),
  credential_exists: kept(
    'credential version',
    'a version that does not exist yet; versions are never replaced',
    ['request'],
    'conflict',
  ),
  credential_unknown: kept('credential version', 'one that is stored', ['request'], 'authorization_denied'),
  grant_backed_off: kept(
    'grant',
    'one whose preparations are not left again and again',
    ['preparation'],
    'conflict',
  ),
  provider_paused: kept('provider', 'one that did not hang again and again', ['preparation'], 'upstream'),
  slot_held: kept('prepared slot', 'a free slot', ['preparation'], 'conflict'),
  attempt_unregistered: kept('attempt', 'a registered attempt', ['preparation'], 'authorization_denied'),
  attempt_differs: kept(
    'attempt',
    'the registration that was registered',
    ['request', 'preparation'],
    'conflict',
  ),
  attempt_ended: kept('attempt state', 'registered', ['preparation'], 'conflict'),
  registration_ended: kept('attempt state', 'registered', ['request'], 'authorization_denied'),
  attempt_dispatched: kept(
    'attempt state',
    'an attempt that was not dispatched; read its outcome',
    ['request'],
    'conflict',
  ),
  attempt_unknown: kept('attempt', 'an attempt of this broker', ['request'], 'attempt_unknown'),
  attempt_pending: kept('attempt', 'an attempt that ended or is held', ['request'], 'attempt_pending'),
  outcome_unrecorded: silent(
    'recorded outcome',
    'an end on disk within the governing deadline',
    ['request'],
    'storage',
  ),
  store_fault: silent('state file', 'a commit on disk', ['request'], 'storage'),
} as const satisfies Record<string, RefusalRow>
