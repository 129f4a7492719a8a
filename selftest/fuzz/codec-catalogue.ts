// Owns the list of every codec that `protocol/` exports, by name, and valid texts for each: any part of a seed
// document that a codec reads is a sample of it. A test holds the list against the folder.
import * as acknowledgement from '../../protocol/acknowledgement.js'
import * as administration from '../../protocol/administration.js'
import * as admissionAttachments from '../../protocol/admission-attachments.js'
import * as admissionDocument from '../../protocol/admission-document.js'
import * as admissionRequirements from '../../protocol/admission-requirements.js'
import * as executionNonceEncoding from '../../protocol/execution-nonce-encoding.js'
import * as operationRpc from '../../protocol/operation-rpc.js'
import * as admissionOperation from '../../protocol/admission-operation.js'
import * as attemptRequest from '../../protocol/attempt-request.js'
import * as authorityRpc from '../../protocol/authority-rpc.js'
import * as callerAuthorization from '../../protocol/caller-authorization.js'
import * as callerContext from '../../protocol/caller-dispatch-context.js'
import * as callerHttp from '../../protocol/caller-http.js'
import * as callerReport from '../../protocol/caller-report.js'
import * as capability from '../../protocol/capability.js'
import { type Codec, decode } from '../../protocol/codec.js'
import * as credentialMutation from '../../protocol/credential-mutation.js'
import * as destination from '../../protocol/destination.js'
import * as envelope from '../../protocol/envelope.js'
import * as evidence from '../../protocol/evidence.js'
import * as executeRequest from '../../protocol/execute-request.js'
import * as executeResponse from '../../protocol/execute-response.js'
import * as executionNonce from '../../protocol/execution-nonce.js'
import * as failedPreparation from '../../protocol/failed-preparation.js'
import * as failure from '../../protocol/failure.js'
import * as grant from '../../protocol/grant.js'
import * as hold from '../../protocol/hold.js'
import * as kernelHead from '../../protocol/kernel-head.js'
import * as kernelRpc from '../../protocol/kernel-rpc.js'
import * as placement from '../../protocol/placement.js'
import * as possessionProof from '../../protocol/possession-proof.js'
import * as receipt from '../../protocol/receipt.js'
import * as registration from '../../protocol/registration.js'
import * as status from '../../protocol/status.js'
import * as unixTime from '../../protocol/unix-time.js'
import * as aggregateBudget from '../../protocol/aggregate-budget.js'
import * as approvalRpc from '../../protocol/approval-rpc.js'
import * as approvalToken from '../../protocol/approval-token.js'
import * as capabilityToken from '../../protocol/capability-token.js'
import * as constraint from '../../protocol/constraint.js'
import * as delegationLink from '../../protocol/delegation-link.js'
import * as governedIntent from '../../protocol/governed-intent.js'
import * as scope from '../../protocol/scope.js'
import * as thresholdProposal from '../../protocol/threshold-proposal.js'
import * as toolCallResponse from '../../protocol/tool-call-response.js'
import * as invocationContext from '../../protocol/invocation-context.js'
import * as toolCallRpc from '../../protocol/tool-call-rpc.js'
import * as toolOutcome from '../../protocol/tool-outcome.js'
import * as toolCall from '../../protocol/tool-call.js'
import * as admissionMetadata from '../../protocol/admission-metadata.js'
import * as checkpoint from '../../protocol/checkpoint.js'
import * as dispatchCommit from '../../protocol/dispatch-commit.js'
import * as exportManifest from '../../protocol/export-manifest.js'
import * as kernelReceipt from '../../protocol/kernel-receipt.js'
import * as logProof from '../../protocol/log-proof.js'
import * as receiptRpc from '../../protocol/receipt-rpc.js'
import { jsonSpans } from './json-spans.js'
import { seedDocuments } from './seed-documents.js'

const MODULES: readonly object[] = [
  acknowledgement,
  possessionProof,
  administration,
  admissionAttachments,
  admissionDocument,
  admissionRequirements,
  executionNonceEncoding,
  operationRpc,
  admissionOperation,
  attemptRequest,
  callerAuthorization,
  callerContext,
  callerHttp,
  callerReport,
  authorityRpc,
  capability,
  credentialMutation,
  destination,
  envelope,
  evidence,
  executeRequest,
  executeResponse,
  executionNonce,
  failedPreparation,
  failure,
  grant,
  hold,
  kernelHead,
  kernelRpc,
  placement,
  receipt,
  registration,
  status,
  unixTime,
  aggregateBudget,
  approvalRpc,
  approvalToken,
  capabilityToken,
  constraint,
  delegationLink,
  governedIntent,
  scope,
  thresholdProposal,
  invocationContext,
  toolCall,
  toolCallRpc,
  toolOutcome,
  toolCallResponse,
  admissionMetadata,
  checkpoint,
  dispatchCommit,
  exportManifest,
  kernelReceipt,
  logProof,
  receiptRpc,
]

/** Every exported codec by its name. */
export const CODECS: ReadonlyMap<string, Codec<unknown>> = new Map(
  MODULES.flatMap(module => Object.entries(module)).filter((entry): entry is [string, Codec<unknown>] =>
    isCodec(entry[1]),
  ),
)

export function isCodec(value: unknown): value is Codec<unknown> {
  return typeof value === 'object' && value !== null && 'read' in value && 'write' in value
}

/** Valid texts of each codec. */
export function codecSamples(): ReadonlyMap<string, readonly Uint8Array[]> {
  const parts = [...new Set([...NUMBERS, ...seedDocuments().flatMap(partsOf)])].map(text => Buffer.from(text))
  return new Map(
    [...CODECS].map(([name, codec]) => [
      name,
      parts.filter(part => reads(codec, part)).slice(0, MAXIMUM_SAMPLES),
    ]),
  )
}

const MAXIMUM_SAMPLES = 24
const NUMBERS = ['0', '1', '1800000000', '9007199254740991']

function partsOf(document: Uint8Array): string[] {
  const text = Buffer.from(document).toString('utf8')
  return jsonSpans(text, Infinity)
    .filter(({ kind, start }) => kind === 'value' && !isNumber(text, start))
    .map(({ start, end }) => text.slice(start, end))
}

/** Numbers are samples of every counter, and byte strings are full of them: a few are added by name. */
function isNumber(text: string, start: number): boolean {
  return /[-0-9]/.test(text[start] ?? '')
}

function reads(codec: Codec<unknown>, part: Uint8Array): boolean {
  try {
    decode(codec, part, 'part')
    return true
  } catch {
    return false
  }
}
