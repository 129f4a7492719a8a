// Owns the codes of caller delivery: what kernel and executor refuse of each other's documents.
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
} as const
