// Owns the messages of the one-call MCP session as a well-behaved client writes them, and the fixed request that they
// carry. A test changes one of them.
import { encode } from '../../protocol/codec.js'
import { BrokerExecuteRequest } from '../../protocol/execute-request.js'
import { execute } from './own-request.js'

type Message = Readonly<Record<string, unknown>>

export const TOOL_NAME = 'execute'
export const PROTOCOL_VERSION = '2025-11-25'

/** The execute request as another program spells it: any order of members, any white space. */
export const callArguments: Message = JSON.parse(
  Buffer.from(encode(BrokerExecuteRequest, execute)).toString(),
) as Message

export const initialize: Message = {
  jsonrpc: '2.0',
  id: 0,
  method: 'initialize',
  params: {
    protocolVersion: PROTOCOL_VERSION,
    capabilities: {},
    clientInfo: { name: 'test', version: '1' },
  },
}
export const initialized: Message = { jsonrpc: '2.0', method: 'notifications/initialized' }
export const list: Message = { jsonrpc: '2.0', id: 1, method: 'tools/list' }
export const ping: Message = { jsonrpc: '2.0', id: 'p', method: 'ping' }
export const call: Message = {
  jsonrpc: '2.0',
  id: 2,
  method: 'tools/call',
  params: { name: TOOL_NAME, arguments: callArguments },
}

/** The shortest session that is answered. */
export const session: readonly Message[] = [initialize, initialized, list, call]

export function linesOf(messages: readonly (Message | string)[]): Buffer {
  return Buffer.from(messages.map(one => `${typeof one === 'string' ? one : JSON.stringify(one)}\n`).join(''))
}
