// Owns: what a start fixes: the captured hold with the commits it rests on, and the owner that captured it.
// Must never: be made outside the transaction whose commit index it names.
// Source: the dispatch commit of the admission operation; the combined capture metadata of the kernel.
import type { ProviderAttempt } from '../../protocol/dispatch-commit.js'
import { grantRevocationId, revocationSetDigest } from '../../protocol/hold.js'
import { type AdmissionOperation, type Announcement, brokeredCall, type DispatchCommit } from './operation.js'

/** One transport: the broker's socket, under the one key that its configuration pins. */
const BROKER_TRANSPORT_ID = 'chio-broker'
const TRANSPORT_KEY_EPOCH = 1
/** The capture itself, then the dispatch commit: two moves in one durable commit. */
const MOVES_OF_START = 2

export interface CommitMoment {
  readonly commitIndex: number
  readonly revocationIndex: number
  readonly nowUnixMs: number
  readonly storeId: string
  readonly ownerEpoch: number
  readonly leaseId: string
}

/** Everything whose revocation ends this operation: its grant, its capability, the grant's revocation id. */
export function revocationIdsOf(operation: AdmissionOperation): readonly string[] {
  const { answer, request } = brokeredCall(operation).reservation
  const { grantId } = request
  return [grantId, answer.capability.body.capabilityId, grantRevocationId(grantId)]
}

/** The attempt that a brokered operation announces, before the broker knows of it. */
export function brokerAttemptOf({ binding, ids }: Announcement): ProviderAttempt {
  return {
    attempt_id: ids.attemptId,
    operation_id: binding.operation_id,
    transport_id: BROKER_TRANSPORT_ID,
    transport_key_epoch: TRANSPORT_KEY_EPOCH,
  }
}

export function dispatchCommitOf(
  operation: AdmissionOperation,
  revocationIds: readonly string[],
  moment: CommitMoment,
): DispatchCommit {
  return {
    captured: {
      authorityCommitIndex: moment.commitIndex,
      budgetCommitIndex: moment.commitIndex,
      checkedRevocationSetDigest: revocationSetDigest(revocationIds),
      leaderEpoch: moment.ownerEpoch,
      revocationCommitIndex: moment.revocationIndex,
    },
    committed_version: operation.version + MOVES_OF_START,
    coordinator_lease_epoch: moment.ownerEpoch,
    coordinator_lease_id: moment.leaseId,
    provider_attempt: operation.attachments.broker_attempt ?? null,
    startedAtUnixMs: moment.nowUnixMs,
    store_fence: {
      lease_id: moment.leaseId,
      owner_epoch: moment.ownerEpoch,
      store_uuid: moment.storeId,
    },
  }
}
