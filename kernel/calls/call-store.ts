// Owns: the durable moves of tool calls: each is one commit with its judgement inside.
// Must never: show how a store does it. A denial is a value and is committed with its receipt; what the operation itself
// refuses is thrown, and leaves nothing behind.
// Source: the caller API of the kernel over its admission store.
import type { OperationBinding } from '../../protocol/admission-operation.js'
import type { SignedExecutionNonce } from '../../protocol/execution-nonce.js'
import type { InvocationContext } from '../../protocol/invocation-context.js'
import type { JsonValue } from '../../protocol/json.js'
import type { KernelReceipt } from '../../protocol/kernel-receipt.js'
import type { PublicKey } from '../../protocol/keys.js'
import type { ToolCallRequest } from '../../protocol/tool-call.js'
import type { CallCredentials } from '../../protocol/tool-call-rpc.js'
import type { CallRefusal } from './call-refusal.js'
import type { CallGuard } from './evaluate-call.js'
import type { AdmissionOperation, SealedRequest } from '../operation/operation.js'
import type { ToolCallTerms } from './tool-call-terms.js'

/** What this kernel holds every call against. */
export interface CallPolicy {
  readonly guards: readonly CallGuard[]
  readonly isTarget: (serverId: string, toolName: string) => boolean
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
  readonly terms: ToolCallTerms
}

export interface ReserveCallCommand extends CallCommand {
  readonly binding: OperationBinding
  readonly nonce: SignedExecutionNonce
}

export interface StartCallCommand extends CallCommand {
  /** As they are presented now. */
  readonly arguments: JsonValue
  readonly credentials: CallCredentials
  readonly nonce: SignedExecutionNonce
  readonly operationId: string
}

export interface CallDecision {
  readonly operation: AdmissionOperation | null
  readonly receipt: KernelReceipt | null
  readonly refusal: CallRefusal | null
}

export interface CallStore {
  /** Admits a call as prepared, with its nonce issued and nothing held; the same request again finds it as it stands. */
  preflightCall(command: PreflightCommand): Promise<CallDecision>
  /** Takes the hold and reserves the nonce, up to ready_to_dispatch; a denial takes the operation back. */
  reserveCall(command: ReserveCallCommand): Promise<CallDecision>
  /** Judges a start against what lives now. */
  startCall(command: StartCallCommand): Promise<CallDecision>
}
