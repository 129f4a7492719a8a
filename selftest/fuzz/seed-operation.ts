// Owns the seed documents of an operation as it is kept and explained, of its nonce's reservation, and of the clock.
// Must never: hold a real secret.
import type { JsonValue } from '../../protocol/json.js'

const DIGEST = 'd'.repeat(64)
const AT = 1_800_000_000_000

type Named = readonly [kind: string, document: JsonValue]
type Document = { readonly [member: string]: JsonValue }

const STATED = { operationId: DIGEST, provider: 'did_not_act', statement: 'asked the provider' }
const CLOCK = { highWaterUnixMs: AT, wallUnixMs: AT }
const FAILED = { error: { code: 'tool_server_error', detail: 'authority_unavailable' }, operationId: DIGEST }
const WARNING = { code: 'operation_shares_arguments', operationIds: [DIGEST], sentence: 'x' }
const HEAD = {
  bootId: 'boot-own',
  commitIndex: 2,
  entries: 1,
  lastLeaf: DIGEST,
  schema: 'chio.kernel-head.v1',
  storeId: DIGEST,
}
const HISTORY = {
  cause: 'asked',
  from: null,
  ownerEpoch: 1,
  recordedAtUnixMs: AT,
  to: 'prepared',
  version: 1,
}
const ATTEMPT = {
  attempt_id: 'attempt-own',
  operation_id: DIGEST,
  transport_id: 'own',
  transport_key_epoch: 1,
}

/** The wire's document of an operation, under a binding. */
export function operationDocumentOf(binding: JsonValue): Document {
  return {
    attachments: { broker_attempt: ATTEMPT, budget_hold_id: 'hold-own', execution_nonce_id: 'nonce-own' },
    binding,
    coordinator_lease_epoch: 1,
    dispatch_commit: null,
    dispatch_state: 'not_committed',
    last_error: 'x',
    schema: 'chio.admission-operation.v1',
    state: 'ready_to_dispatch',
    terminal_replay: { receipt_id: 'rcpt-own' },
    version: 4,
  }
}

/** What no message of the socket carries by itself. */
export function keptDocuments(binding: JsonValue, signedNonce: JsonValue): JsonValue[] {
  const reservation = {
    issuer: DIGEST,
    operation_id: DIGEST,
    schema: 'chio.admission-execution-nonce-reservation.v1',
    signed_nonce: signedNonce,
  }
  return [operationDocumentOf(binding), reservation, explanationOf(binding), HEAD, [WARNING]]
}

function explanationOf(binding: JsonValue): Document {
  return {
    attempt: 'none',
    attemptReason: null,
    capture: 'nothing is held',
    document: operationDocumentOf(binding),
    history: [HISTORY, { ...HISTORY, from: 'prepared', to: 'ready_to_dispatch', version: 2 }],
    mover: 'host',
    next: 'wait',
    reconciliations: [
      {
        administrators: [DIGEST],
        recordedAtUnixMs: AT,
        schema: 'chio.reconciliation.v1',
        stated: STATED,
      },
    ],
    sharesArgumentsWith: [DIGEST],
  }
}

export function recordRequests(): Named[] {
  return [
    ['explain', { id: DIGEST }],
    ['reconcile', STATED],
    ['accept_clock', CLOCK],
    ['show_clock', {}],
    ['preparation_failed', FAILED],
  ]
}

/** @param view of an operation. */
export function recordResults(view: Document, binding: JsonValue): Named[] {
  return [
    ['preparation_failed', view],
    ['inspect', { ...view, document: operationDocumentOf(binding) }],
    ['explain', { explanation: explanationOf(binding), operation: view }],
    ['reconcile', { commitIndex: 1, operationId: DIGEST }],
    ['accept_clock', { commitIndex: 1 }],
    ['show_clock', { ...CLOCK, fault: 'wall clock refused' }],
  ]
}
