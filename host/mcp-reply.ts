// What a server may say in the one-call session, and what of it stands. Every reader refuses with a sentence of ours
// and quotes nothing that the server said.
// Source: Model Context Protocol 2025-11-25, schema of results; the wrapper's rules: empty content, no error flag, a
// structured response that verifies against the original request.
import {
  isMembers,
  type JsonMembers,
  MAXIMUM_TOOL_NAME_BYTES,
  MCP_PROTOCOL_VERSION,
} from '../client/mcp-message.js'
import { canonicalBytes } from '../protocol/canonical.js'
import { type Clock, unixSeconds } from '../protocol/clock.js'
import { decode, identifier } from '../protocol/codec.js'
import { BrokerError } from '../protocol/errors.js'
import { BrokerExecuteResponse, type OutcomeContext, verifyResponseOf } from '../protocol/execute-response.js'
import { type JsonValue, parseStrictJson } from '../protocol/json.js'

export type McpReply =
  | { readonly kind: 'notification' }
  | { readonly kind: 'result'; readonly id: number; readonly result: JsonMembers }

/** Reads one line of a server. @throws BrokerError `invalid_request` for anything but a result or a notification. */
export function readReply(line: Uint8Array): McpReply {
  const message = parseStrictJson(line, 'MCP server')
  if (!isMembers(message) || message['jsonrpc'] !== '2.0') return refuse('one JSON-RPC 2.0 message a line')
  const { id, method, result, error } = message
  if (method !== undefined) {
    if (id !== undefined) return refuse('no request of its own')
    return { kind: 'notification' }
  }
  if (error !== undefined) return refuse('a result, not an error')
  if (typeof id !== 'number' || !isMembers(result)) return refuse('a result under the id of its request')
  return { kind: 'result', id, result }
}

/** The answer to `initialize`. */
export function openedSession(result: JsonMembers): void {
  if (result['protocolVersion'] !== MCP_PROTOCOL_VERSION) {
    refuse(`protocol version ${MCP_PROTOCOL_VERSION}`)
  }
  const capabilities = result['capabilities']
  if (!isMembers(capabilities) || !isMembers(capabilities['tools'])) refuse('a server of tools')
}

/** The answer to `tools/list`. @returns the name of its only tool. */
export function listedTool(result: JsonMembers): string {
  const { tools, nextCursor } = result
  if (!Array.isArray(tools) || tools.length !== 1 || nextCursor !== undefined)
    return refuse('exactly one tool')
  const [tool] = tools as readonly JsonValue[]
  const name = isMembers(tool) ? tool['name'] : undefined
  if (typeof name !== 'string') return refuse('a tool with a name')
  return decode(identifier(MAXIMUM_TOOL_NAME_BYTES), canonicalBytes(name), 'MCP tool name')
}

/** What a call was about, and the clock of who checks its answer. */
export interface AskedCall {
  readonly context: OutcomeContext
  readonly clock: Clock
}

/** The answer to `tools/call`. @throws BrokerError unless it is the broker's own answer to exactly this request. */
export function checkAnswer(result: JsonMembers, { context, clock }: AskedCall): void {
  const { content, isError, structuredContent } = result
  if (!Array.isArray(content) || content.length > 0) refuse('empty content')
  if (isError !== undefined && isError !== false) refuse('no error flag')
  if (!isMembers(structuredContent)) return refuse('a structured response')
  const response = decode(BrokerExecuteResponse, canonicalBytes(structuredContent), 'MCP response')
  const { receipt } = verifyResponseOf(response, context)
  const { issuedAtUnixSeconds } = receipt.body
  const { notBeforeUnixSeconds } = context.request.capability.body
  if (issuedAtUnixSeconds < notBeforeUnixSeconds || issuedAtUnixSeconds > unixSeconds(clock)) {
    refuse('a receipt issued between the capability and now')
  }
}

function refuse(expected: string): never {
  throw new BrokerError('invalid_request', `MCP server refused: expected ${expected}`)
}
