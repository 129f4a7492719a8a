// Owns: the interface of the kernel's durable records. Every method that writes is one atomic move: its checks,
// its compare-and-set and its commit belong together, and it resolves when the move is on disk.
// Must never: show how a store does it. Several kernels may come to share one behind this interface.
// Source: the admission store, its mutation fence and the budget holds of the kernel's wire.
import type { CallerExecutor } from '../protocol/caller-authorization.js'
import type { CallStore } from './calls/call-store.js'
import type { AdmissionState } from '../protocol/admission-states.js'
import type { AdminOperation } from '../protocol/administration.js'
import type { GovernedApprovalToken } from '../protocol/approval-token.js'
import type { FailedPreparation } from '../protocol/failed-preparation.js'
import type { Grant } from '../protocol/grant.js'
import type { VerifiedNonce } from '../protocol/execution-nonce.js'
import type { BrokerRecord } from '../protocol/kernel-rpc.js'
import type { PublicKey } from '../protocol/keys.js'
import type {
  AcceptClock,
  ClockView,
  HistoryLine,
  Reconcile,
  Reconciliation,
} from '../protocol/operation-rpc.js'
import type { AttemptRegistration } from '../protocol/registration.js'
import type { ProposalPins, ThresholdProposal } from '../protocol/threshold-proposal.js'
import type {
  AdmissionOperation,
  Announcement,
  Reservation,
  SealedRequest,
  StoredGrant,
} from './operation/operation.js'
import type { OutputJudgement } from './output/output-guards.js'
import type { ReceiptStore } from './log/receipt-store.js'

/** What a list is cut to: one caller's records, or everybody's. */
export interface ListFilter {
  readonly callerPublicKey: string | null
  readonly limit: number
}

/** The answer to an administrator's operation; an exact retry gets it again. */
export interface AdminOutcome {
  readonly commitIndex: number
  readonly grantId: string
  readonly newlyRevoked: boolean
}

export interface ReserveCommand {
  readonly reservation: Reservation
  /** The nonce of its answer, verified; the store reserves it with the operation. */
  readonly nonce: VerifiedNonce
  readonly issuer: PublicKey
  /** Most reservations with a live nonce at a time: a full store refuses, it never evicts. */
  readonly nonceCapacity: number
}

/** A request that has to wait for approvals: nothing is minted, the hold is set aside. */
export interface AnnounceCommand {
  readonly announcement: Announcement
  readonly proposal: ThresholdProposal
}

/** An approver's word. */
export interface ApprovalCommand {
  readonly operationId: string
  readonly approval: GovernedApprovalToken
  readonly pins: ProposalPins
}

/** The answer to an approved request, minted when its host asked again. */
export interface AnswerCommand extends ReserveCommand {
  readonly pins: ProposalPins
}

export interface StartCommand {
  /** Names the operation too. */
  readonly nonce: VerifiedNonce
  readonly issuer: PublicKey
}

export interface RetainCommand {
  readonly operationId: string
  readonly registration: AttemptRegistration
  readonly sealed: SealedRequest
}

export interface SettleCommand {
  readonly operationId: string
  /** Why, in words for whoever reads the history. */
  readonly cause: string
}

/** What recovery did, for the log. */
export interface Recovered {
  readonly adopted: number
  /** Captured calls whose executor may act now. */
  readonly authorized: number
  readonly compensated: number
  /** Open operations that are settled from whoever may know what happened. */
  readonly left: number
  /** Captured calls whose executor is pinned no more. */
  readonly unknown: number
}

export interface OperationRecord {
  readonly history: readonly HistoryLine[]
  readonly reconciliations: readonly Reconciliation[]
  readonly sharing: readonly string[]
}

export interface AdmissionStore {
  readonly storeId: string
  /** Raised with every opening: an owner of an older epoch can write nothing any more. */
  readonly ownerEpoch: number
  /** The moves of tool calls. */
  readonly calls: CallStore
  /** The log of signed receipts. */
  readonly receipts: ReceiptStore

  findOperation(operationId: string): Promise<AdmissionOperation | undefined>
  /** The id of the operation that announced an attempt. */
  findAttempt(attemptId: string): Promise<string | undefined>
  /** What is kept beside an operation. */
  readRecord(operation: AdmissionOperation): Promise<OperationRecord>
  /** Unresolved operations with the same arguments. */
  findSharing(operation: AdmissionOperation): Promise<readonly string[]>
  readClock(): Promise<ClockView>
  findRequest(namespaceDigest: string, requestId: string): Promise<AdmissionOperation | undefined>
  listOperations(filter: ListFilter): Promise<readonly AdmissionOperation[]>
  /** What approvers said of an operation, the first word first. */
  approvalsOf(operationId: string): Promise<readonly GovernedApprovalToken[]>
  /** Every operation that is not in a terminal state. */
  openOperations(): Promise<readonly AdmissionOperation[]>
  /** What waits for approvals, or has them: a caller's own, or everybody's. */
  waitingOperations(callerPublicKey: string | null): Promise<readonly AdmissionOperation[]>
  countByState(): Promise<readonly { readonly state: AdmissionState; readonly count: number }[]>
  findRetainedRequest(operationId: string): Promise<SealedRequest | undefined>
  findGrant(grantId: string): Promise<StoredGrant | undefined>
  listGrants(filter: ListFilter): Promise<readonly StoredGrant[]>
  /** Whether any of the ids is revoked, and the index of the newest commit that changed revocations. */
  readRevocation(ids: readonly string[]): Promise<{ readonly revoked: boolean; readonly commitIndex: number }>
  findAdminOutcome(authorizationDigest: string, intentDigest: string): Promise<AdminOutcome | undefined>

  /** Adds a grant and consumes its approvals. */
  issueGrant(grant: Grant, operation: AdminOperation): Promise<AdminOutcome>
  /** Keeps what a person found out. It moves nothing. */
  reconcile(stated: Reconcile, operation: AdminOperation): Promise<AdminOutcome>
  /** Counts from the wall clock as it is. @throws BrokerError `conflict` unless the high water is still the one that was signed. */
  acceptClock(accepted: AcceptClock, operation: AdminOperation): Promise<AdminOutcome>
  /** Revokes a grant and consumes the approvals. Repeating it is safe. */
  revokeGrant(grantId: string, operation: AdminOperation): Promise<AdminOutcome>
  /** Revokes a capability token by its id, known here or not. Repeating it is safe. */
  revokeCapability(capabilityId: string, operation: AdminOperation): Promise<AdminOutcome>
  /**
   * Admits a reservation with its hold and nonce, up to ready_to_dispatch, in one commit.
   * The same reservation again returns the operation as it stands; `request_binding_mismatch` otherwise.
   */
  reserve(command: ReserveCommand): Promise<AdmissionOperation>
  /** Admits a request up to approval_required, with its hold; the same one again returns it as it stands. */
  announce(command: AnnounceCommand): Promise<AdmissionOperation>
  /** Records one word: a denial takes the operation back, the last approval that was missing approves it. */
  submitApproval(command: ApprovalCommand): Promise<AdmissionOperation>
  /** Makes an approved operation ready, with its nonce. */
  answerApproved(command: AnswerCommand): Promise<AdmissionOperation>
  /** Keeps the exact request and its registration. The same registration again changes nothing. */
  retainRegistration(command: RetainCommand): Promise<AdmissionOperation>
  /** Captures the hold and commits the dispatch, once. A committed operation is returned as it stands. */
  start(command: StartCommand): Promise<AdmissionOperation>
  /** Ends an operation by a verified record of the broker; the same record again changes nothing. */
  finalize(
    operationId: string,
    record: BrokerRecord,
    judgement?: OutputJudgement,
  ): Promise<AdmissionOperation>
  /** Notes what a host was told of a preparation; changes no state. */
  preparationFailed(failed: FailedPreparation): Promise<AdmissionOperation>
  /** Takes back what was not started: the hold is reversed, the nonce cancelled. */
  compensate(command: SettleCommand): Promise<AdmissionOperation>
  /** Ends a started operation that the broker never came to hold; the hold stays spent. */
  settleNotAccepted(command: SettleCommand): Promise<AdmissionOperation>
  /**
   * Adopts or takes back what an earlier owner left open; in one commit, before anything is served.
   * @param executor to whom this owner delivers: what was captured for it and not authorized yet is authorized.
   */
  recover(executor?: CallerExecutor | null): Promise<Recovered>
  close(): Promise<void>
}
