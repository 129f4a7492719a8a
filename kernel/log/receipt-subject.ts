// Owns: what a receipt says was asked: which tool of which server, with which parameters, for every kind of call.
// Must never: hold a body or arguments: they are the host's and the executor's, and are told by digest.
// Source: the action of the ChioReceipt; what a call of the broker calls is named as the execution nonce names it.
import type { JsonValue } from '../../protocol/json.js'
import { valueHash } from '../../protocol/kernel-receipt.js'
import type { ReserveRequest } from '../../protocol/kernel-rpc.js'
import type { ToolCallRequest } from '../../protocol/tool-call.js'
import { type AdmissionOperation, announcementOf, isToolCall } from '../operation/operation.js'

/** A tool as receipts name it. */
export interface ReceiptTool {
  readonly name: string
  readonly server: string
}

/** What the broker does for every call of its own. */
export const BROKERED_TOOL: ReceiptTool = { name: 'execute', server: 'chio-broker' }

export interface ReceiptSubject {
  readonly parameters: JsonValue
  readonly tool: ReceiptTool
}

export function receiptSubject(operation: AdmissionOperation): ReceiptSubject {
  const { binding, call } = operation
  if (isToolCall(call)) {
    return subjectOfCall({ ...call.terms, requestId: binding.request_id })
  }
  return brokeredSubject(announcementOf(operation).request)
}

/** What a host asks of the broker, also where no operation came of it. */
export function brokeredSubject(request: ReserveRequest): ReceiptSubject {
  const parameters = {
    body_bytes: request.bodyBytes,
    body_sha256: request.bodySha256,
    grant_id: request.grantId,
    invocation_id: request.invocationId,
    request_digest: request.requestDigest,
    response_limit_bytes: request.responseLimitBytes,
    timeout_ms: request.timeoutMs,
  }
  return { parameters, tool: BROKERED_TOOL }
}

/** What an agent asks of a tool, also where no operation came of it. */
export function callSubject({ id, params, server_id, tool }: ToolCallRequest): ReceiptSubject {
  return subjectOfCall({
    parameterHash: valueHash(params),
    requestId: id,
    serverId: server_id,
    toolName: tool,
  })
}

interface CallFacts {
  readonly parameterHash: string
  readonly requestId: string
  readonly serverId: string
  readonly toolName: string
}

function subjectOfCall({ parameterHash, requestId, serverId, toolName }: CallFacts): ReceiptSubject {
  const parameters = {
    arguments_sha256: parameterHash,
    request_id: requestId,
    server_id: serverId,
    tool: toolName,
  }
  return { parameters, tool: { name: toolName, server: serverId } }
}
