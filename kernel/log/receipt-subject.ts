// Owns: what a receipt says was asked: which tool of which server, with which parameters, for every kind of call.
// Must never: hold a body or arguments: they are the host's and the executor's, and are told by digest.
// Source: the action of the ChioReceipt; what a call of the broker calls is named as the execution nonce names it.
import type { JsonValue } from '../../protocol/json.js'
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
    const { parameterHash, serverId, toolName } = call.terms
    return {
      parameters: {
        arguments_sha256: parameterHash,
        request_id: binding.request_id,
        server_id: serverId,
        tool: toolName,
      },
      tool: { name: toolName, server: serverId },
    }
  }
  const { request } = announcementOf(operation)
  const parameters = {
    body_bytes: request.bodyBytes,
    body_sha256: request.bodySha256,
    grant_id: request.grantId,
    request_digest: request.requestDigest,
    response_limit_bytes: request.responseLimitBytes,
    timeout_ms: request.timeoutMs,
  }
  return { parameters, tool: BROKERED_TOOL }
}
