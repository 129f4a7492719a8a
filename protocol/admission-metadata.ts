// The part of a kernel's receipt that says of which admission operation it speaks, in which version and state, and
// under which owner of the store. Must never hold what the operation carries: ids, digests and states alone.
// Source: `chio.admission-receipt.v1`, with the two states that its published schema still lacks.
import { ADMISSION_STATES, DISPATCH_STATES } from './admission-states.js'
import { digest, type Infer, identifier, integer, literal, nullable, object, oneOf } from './codec.js'
import { DispatchCommitRecord, StoreFence } from './dispatch-commit.js'
import { MAXIMUM_INTEGER } from './limits.js'

export const ADMISSION_RECEIPT_SCHEMA = 'chio.admission-receipt.v1'

const positive = integer({ min: 1, max: MAXIMUM_INTEGER })

export const AdmissionReceiptMetadata = object({
  compensation_status: oneOf(
    'compensated_before_dispatch',
    'not_accepted_after_dispatch_commit',
    'not_compensated',
  ),
  coordinator_lease_epoch: positive,
  coordinator_lease_id: identifier(),
  operation_id: digest(),
  projected_dispatch_state: oneOf(...DISPATCH_STATES),
  projected_operation_version: positive,
  projected_state: oneOf(...ADMISSION_STATES),
  request_binding_hash: digest(),
  request_id: identifier(),
  request_namespace_digest: digest(),
  retained_dispatch_commit: nullable(DispatchCommitRecord),
  schema: literal(ADMISSION_RECEIPT_SCHEMA),
  store_fence: StoreFence,
  tool_outcome_id: nullable(digest()),
  tool_outcome_version: nullable(positive),
  trusted_time_unix_ms: positive,
})
export type AdmissionReceiptMetadata = Infer<typeof AdmissionReceiptMetadata>
