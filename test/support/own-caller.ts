// Owns one authorization and one report of caller delivery, made from fixed seeds and times, and the bodies that carry
// them over HTTP. They are frozen with the other own documents. Must never hold a real secret.
import {
  CallerAuthorization,
  type CallerAuthorizationBody,
  callerAuthorizationDigest,
  callerTransportId,
  signCallerAuthorization,
} from '../../protocol/caller-authorization.js'
import {
  CALLER_PROTOCOL,
  EvaluateBody,
  EvaluateReply,
  ReportBody,
  ReportReply,
  StartBody,
  StartReply,
} from '../../protocol/caller-http.js'
import { CallerReport, type CallerReportBody, signCallerReport } from '../../protocol/caller-report.js'
import type { Codec } from '../../protocol/codec.js'
import { sha256Hex } from '../../protocol/digest.js'
import { signExecutionNonce } from '../../protocol/execution-nonce.js'
import type { KernelReceipt } from '../../protocol/kernel-receipt.js'
import type { ToolCallRequest } from '../../protocol/tool-call.js'
import { receiptsOf } from './kernel-receipts.js'
import { NOW, OPERATION_ID, OWN_KEYS, utf8 } from './own-request.js'

export const CALLER_BEGIN_UNIX_MS = NOW * 1_000
export const CALLER_END_UNIX_MS = CALLER_BEGIN_UNIX_MS + 120_000
const executorKey = OWN_KEYS.caller
const kernelKey = OWN_KEYS.authority
const executor = { executor_id: 'executor-own', key_epoch: 1, public_key: executorKey.publicKey }

/** A body with its members in agreement, for one operation. */
export function authorizationBody(operationId = OPERATION_ID): CallerAuthorizationBody {
  return {
    committed: {
      budget_hold_id: 'hold-own',
      dispatch_commit: {
        committed_version: 9,
        coordinator_lease_epoch: 1,
        coordinator_lease_id: 'lease-own',
        provider_attempt: {
          attempt_id: 'attempt-own',
          operation_id: operationId,
          transport_id: callerTransportId('notes'),
          transport_key_epoch: 1,
        },
        store_fence: { lease_id: 'lease-own', owner_epoch: 1, store_uuid: 'store-own' },
      },
      execution_nonce_id: '00000000-0000-7000-8000-000000000000',
      frozen_context_digest: sha256Hex(utf8('context')),
    },
    executor,
    expires_at_unix_ms: CALLER_END_UNIX_MS,
    invocation: {
      capability_digest: sha256Hex(utf8('capability')),
      capability_id: 'capability-own',
      operation_id: operationId,
      parameters_digest: sha256Hex(utf8('parameters')),
      request_binding_hash: sha256Hex(utf8('binding')),
      request_id: 'call-own',
      server_id: 'notes',
      tool_name: 'append',
    },
    kernel_public_key: kernelKey.publicKey,
    not_before_unix_ms: CALLER_BEGIN_UNIX_MS,
    schema: 'chio.caller-dispatch-authorization.v1',
  }
}

export const ownAuthorization = signCallerAuthorization(authorizationBody(), kernelKey)

export function reportBody(authorization = ownAuthorization): CallerReportBody {
  return {
    authorization_digest: callerAuthorizationDigest(authorization),
    claim_id: '00000000-0000-4000-8000-000000000000',
    completed_at_unix_ms: CALLER_END_UNIX_MS + 1_000,
    execution_started_at_unix_ms: CALLER_BEGIN_UNIX_MS + 100,
    executor,
    output: { written: true },
    realized_cost: { currency: 'EUR', units: 3 },
    schema: 'chio.caller-delivery-report.v1',
  }
}

export const ownReport = signCallerReport(reportBody(), executorKey)

/** Documents and bodies of caller delivery, to be frozen. */
export function callerDocuments(call: ToolCallRequest): readonly {
  readonly name: string
  readonly codec: Codec<unknown>
  readonly value: unknown
}[] {
  const [receipt] = receiptsOf(1) as [KernelReceipt]
  const { invocation } = ownAuthorization.authorization
  const execution_nonce = signExecutionNonce(
    {
      bound_to: {
        capability_id: invocation.capability_id,
        parameter_hash: invocation.parameters_digest,
        request_id: invocation.request_id,
        subject_id: OWN_KEYS.caller.publicKey,
        tool_name: invocation.tool_name,
        tool_server: invocation.server_id,
      },
      expires_at: NOW + 120,
      issued_at: NOW,
      nonce_id: '00000000-0000-7000-8000-000000000000',
      schema: 'chio.execution_nonce.v2',
    },
    OPERATION_ID,
    kernelKey,
  )
  const protocol = CALLER_PROTOCOL
  const authorization = ownAuthorization
  const ended = { execution_authorized: false, output: { written: true }, protocol, receipt }
  const reserved = { execution_authorized: false, execution_nonce, receipt, start_required: true }
  return [
    { name: 'caller-authorization', codec: CallerAuthorization, value: authorization },
    { name: 'caller-report', codec: CallerReport, value: ownReport },
    { name: 'evaluate-body', codec: EvaluateBody, value: { request: call } },
    {
      name: 'start-body',
      codec: StartBody,
      value: {
        arguments: { note: 'x' },
        credentials: { dpop_proof: { proof: 'x' } },
        execution_nonce,
        protocol,
      },
    },
    { name: 'report-body', codec: ReportBody, value: { authorization, protocol, report: ownReport } },
    { name: 'evaluate-reserved', codec: EvaluateReply, value: { ...reserved, status: 'reserved' } },
    {
      name: 'evaluate-denied',
      codec: EvaluateReply,
      value: { execution_authorized: false, receipt, status: 'deny' },
    },
    {
      name: 'start-committed',
      codec: StartReply,
      value: { authorization, protocol, status: 'dispatch_committed' },
    },
    { name: 'start-denied', codec: StartReply, value: { protocol, receipt, status: 'deny' } },
    { name: 'report-reconciled', codec: ReportReply, value: { ...ended, status: 'reconciled' } },
    { name: 'report-denied', codec: ReportReply, value: { ...ended, output: null, status: 'deny' } },
  ]
}
