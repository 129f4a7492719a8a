// Owns: the durable moves of tool calls: each is one commit with its judgement inside.
// Must never: show how a store does it. A denial is a value and is committed with its receipt; what the operation itself
// refuses is thrown, and leaves nothing behind.
// Source: the caller API of the kernel over its admission store.
import type { CallerAuthorization, CallerExecutor } from '../../protocol/caller-authorization.js'
import type { OperationBinding } from '../../protocol/admission-operation.js'
import type { FrozenContext } from '../../protocol/caller-dispatch-context.js'
import type { SignedExecutionNonce } from '../../protocol/execution-nonce.js'
import type { InvocationContext } from '../../protocol/invocation-context.js'
import type { JsonValue } from '../../protocol/json.js'
import type { KernelReceipt } from '../../protocol/kernel-receipt.js'
import type { PublicKey } from '../../protocol/keys.js'
import type { ProposalPins, ProposalTerms, ThresholdProposal } from '../../protocol/threshold-proposal.js'
import type { ToolCallRequest } from '../../protocol/tool-call.js'
import type { RawInvocationOutcome, ToolOutput } from '../../protocol/tool-outcome.js'
import type { CallCredentials } from '../../protocol/tool-call-rpc.js'
import type { StoredOutcome } from '../sqlite/outcome-tables.js'
import type { CallRefusal } from './call-refusal.js'
import type { CallGuard } from './evaluate-call.js'
import type { RetainedReport } from '../delivery/retained-report.js'
import type { OutputGuard, OutputJudgement } from '../output/output-guards.js'
import type { AdmissionOperation, SealedRequest } from '../operation/operation.js'
import type { AskedTerms } from './tool-call-terms.js'

/** Who approves calls, and how many of them a call needs. */
export interface CallApprovalPolicy {
  readonly pins: ProposalPins
  /** Signs a proposal as this kernel. */
  readonly propose: (terms: ProposalTerms) => ThresholdProposal
  readonly requiredOf: (serverId: string, toolName: string) => number
}

/** A tool as its calls are held against it. */
export interface KnownTool {
  readonly effectClass: OperationBinding['effect_class']
  /** Over the arguments, before anything is held. */
  readonly guards: readonly CallGuard[]
  /** Over what its executor reports. */
  readonly outputGuards: readonly OutputGuard[]
  /** Approvers who have to agree to each call. */
  readonly requiredApprovals: number
}

/** What this kernel holds every call against. */
export interface CallPolicy {
  readonly approvals: CallApprovalPolicy
  /** To whom calls are delivered; null where this kernel pins nobody. */
  readonly executor: CallerExecutor | null
  readonly guards: readonly CallGuard[]
  /** Whether what is committed outlives a crash. */
  readonly isDurable: boolean
  /** A tool that is registered here. */
  readonly toolOf: (serverId: string, toolName: string) => KnownTool | undefined
  /** Keys whose capability tokens are believed. */
  readonly issuers: readonly PublicKey[]
  readonly nonceCapacity: number
  /** Who signs execution nonces: this kernel. */
  readonly nonceIssuer: PublicKey
}

/** One call, asked by the agent whose connection it came on. */
export interface CallCommand {
  readonly agentId: string
  readonly context: InvocationContext
  readonly policy: CallPolicy
  readonly request: ToolCallRequest
}

export interface PreflightCommand extends CallCommand {
  readonly sealed: SealedRequest
  readonly terms: AskedTerms
  /** Signs the nonce of the call, in the commit that issues it. */
  readonly mintNonce: (nowUnixSeconds: number) => SignedExecutionNonce
}

export interface ReserveCallCommand extends CallCommand {
  readonly binding: OperationBinding
  readonly nonce: SignedExecutionNonce
}

export interface StartCallCommand extends Omit<CallCommand, 'context'> {
  /** Null: the host reads no context beyond that of its reserve. */
  readonly context: InvocationContext | null
  /** As they are presented now. */
  readonly arguments: JsonValue
  readonly credentials: CallCredentials
  readonly nonce: SignedExecutionNonce
  readonly operationId: string
}

export interface AuthorizeCallCommand {
  readonly operationId: string
  readonly policy: Pick<CallPolicy, 'executor'>
}

/** A report whose signature was verified, with what it returned. */
export interface RecordReportCommand {
  readonly raw: RawInvocationOutcome
  readonly report: RetainedReport
  readonly sealed: SealedRequest
}

export interface FinishCallCommand {
  readonly raw: RawInvocationOutcome
  readonly judgement: OutputJudgement
}

/** What is on record of an operation's delivery; each member null before its commit. */
export interface Delivery {
  readonly frozen: FrozenContext | null
  readonly authorization: CallerAuthorization | null
}

export interface CallDecision {
  /** Of a start that delivers: what its executor may act on. */
  readonly authorization?: CallerAuthorization
  /** Of a report that ended its call: the output, where no guard withheld it. */
  readonly output?: ToolOutput
  readonly operation: AdmissionOperation | null
  readonly receipt: KernelReceipt | null
  readonly refusal: CallRefusal | null
}

export interface CallStore {
  /**
   * Admits a call as prepared, with its nonce issued and nothing held, or as one that waits for approvals with its hold
   * and no nonce; the same request again finds it as it stands, and an approved one gets its nonce.
   */
  preflightCall(command: PreflightCommand): Promise<CallDecision>
  /** Takes the hold and reserves the nonce, up to ready_to_dispatch; a denial takes the operation back. */
  reserveCall(command: ReserveCallCommand): Promise<CallDecision>
  /** Judges a start against what lives now, and captures it for the pinned executor. */
  startCall(command: StartCallCommand): Promise<CallDecision>
  /** Signs a captured start, once; answered as it was signed ever after. */
  authorizeCall(command: AuthorizeCallCommand): Promise<CallDecision>
  /** What was signed for an operation, and what was frozen with it. */
  findDelivery(operationId: string): Promise<Delivery>
  /** Keeps a verified report, once, and moves its operation to finalizing. */
  recordReport(command: RecordReportCommand): Promise<AdmissionOperation>
  /** What an operation returned, as it rests; undefined before its report. */
  findOutcome(operationId: string): Promise<StoredOutcome | undefined>
  /** Ends a reported call: by what the guards over its output say. */
  finishCall(command: FinishCallCommand): Promise<AdmissionOperation>
}
