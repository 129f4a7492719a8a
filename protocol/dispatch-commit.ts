// What a start fixes, as documents carry it: which version was committed, by which owner of the store, for which
// attempt. Must never be taken for permission to dispatch: it is the record of one that was given.
// Source: the dispatch commit of the admission operation; snake_case is the wire's.
import { digest, type Infer, identifier, integer, nullable, object } from './codec.js'
import { MAXIMUM_INTEGER } from './limits.js'

const positive = integer({ min: 1, max: MAXIMUM_INTEGER })

export const StoreFence = object({ lease_id: identifier(), owner_epoch: positive, store_uuid: identifier() })
export type StoreFence = Infer<typeof StoreFence>

export const ProviderAttempt = object({
  attempt_id: identifier(),
  operation_id: digest(),
  transport_id: identifier(),
  transport_key_epoch: positive,
})
export type ProviderAttempt = Infer<typeof ProviderAttempt>

const committed = {
  committed_version: positive,
  coordinator_lease_epoch: positive,
  coordinator_lease_id: identifier(),
  store_fence: StoreFence,
}

export const DispatchCommitRecord = object({ ...committed, provider_attempt: nullable(ProviderAttempt) })
export type DispatchCommitRecord = Infer<typeof DispatchCommitRecord>

/** The same of a call that somebody carries out: it always names its attempt. */
export const AttemptCommitRecord = object({ ...committed, provider_attempt: ProviderAttempt })
export type AttemptCommitRecord = Infer<typeof AttemptCommitRecord>
