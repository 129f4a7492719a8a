// Owns the codes of caller delivery: what kernel and executor refuse of each other's documents, and how the executor's
// ledger refuses.
// Must never: be read apart from the table of all codes, which it is a part of.
// Source: the caller delivery errors of the kernel protocol.
import { row } from './error-code-row.js'

export const CALLER_ERROR_CODES = {
  caller_delivery_shape: row(
    'invalid_request',
    1,
    'present the exact document as it was signed, within its bounds',
  ),
  caller_delivery_binding: row(
    'authorization_denied',
    1,
    'compare pins and retained request with the document: it belongs to another kernel, executor or operation',
  ),
  caller_delivery_signature: row(
    'authorization_denied',
    1,
    'do not rely on it: the pinned key did not sign these bytes',
  ),
  caller_delivery_expired: row(
    'authorization_denied',
    1,
    'nothing may begin under it any more; what began stands in the ledger: execute it again to read that',
  ),
  reservation_capacity: row(
    'authority_unavailable',
    69,
    'start what is reserved, cancel it, or wait until its nonces expire; then reserve',
  ),
  // The executor's ledger.
  executor_outcome_unknown: row(
    null,
    75,
    'never carry it out again: see what the claim did to the resource; a report that was retained comes back by itself',
  ),
  executor_capacity: row(
    null,
    1,
    'extend the ledger: chio ledger extend; a claim is kept for ever and none makes room',
  ),
  executor_mismatch: row(
    null,
    1,
    'name the executor, its epoch and its key as the ledger was provisioned for them',
  ),
  executor_redelivery_changed: row(
    'conflict',
    1,
    'present the authorization that was claimed, byte for byte; the first one stands',
  ),

  // What the client of a sidecar meets.
  reply_lost: row(
    null,
    75,
    'recover the original operation with the nonce, authorization and report of the error; never ask under another id',
  ),
  reply_refused: row(
    null,
    75,
    'see who listens at that address; then recover the original operation: the request may have been acted on',
  ),
  sidecar_refused: row(null, 1, 'read the code that it answered with: docs/caller-delivery.md'),
  sidecar_unavailable: row(null, 69, 'start the process that holds the kernel; nothing was asked'),
} as const
