// The server's side of the one-call MCP session: what may come in which order, and what is answered. Any other
// message ends the session without an answer. It decides; it neither reads, writes nor submits.
// Source: the one-call sequence of chio-broker-mcp; Model Context Protocol 2025-11-25, lifecycle and tools.
import { canonicalBytes } from '../protocol/canonical.js'
import { decode } from '../protocol/codec.js'
import { BrokerError } from '../protocol/errors.js'
import { BrokerExecuteRequest } from '../protocol/execute-request.js'
import {
  checkMembers,
  isMembers,
  type JsonMembers,
  MAXIMUM_MCP_MESSAGES,
  MCP_PROTOCOL_VERSION,
  type McpRequest,
  readMcpRequest,
  resultLine,
} from './mcp-message.js'

export interface McpServerOptions {
  readonly toolName: string
  readonly version: string
}

/** What follows from one message. */
export type McpStep =
  | { readonly kind: 'nothing' }
  | { readonly kind: 'answer'; readonly line: Uint8Array }
  | { readonly kind: 'call'; readonly id: string; readonly request: BrokerExecuteRequest }

/** Each state admits its own methods; a call ends the session whatever becomes of it. */
type State = 'new' | 'initializing' | 'ready' | 'listed' | 'called'

const SERVER_NAME = 'chio-broker-mcp'
const DESCRIPTION =
  'Submits one exact authorized request on the prepared stream, once, and returns its response.'

const ADMITTED: Record<State, readonly string[]> = {
  new: ['initialize'],
  initializing: ['notifications/initialized'],
  ready: ['ping', 'tools/list'],
  listed: ['ping', 'tools/call', 'tools/list'],
  called: [],
}

const CALL_MEMBERS: ReadonlySet<string> = new Set(['_meta', 'arguments', 'name'])
const META_ONLY: ReadonlySet<string> = new Set(['_meta'])

export class McpSession {
  readonly #options: McpServerOptions
  #state: State = 'new'
  #messages = 0

  constructor(options: McpServerOptions) {
    this.#options = options
  }

  /** Takes one line. @throws BrokerError `invalid_request` for whatever has no place here; the session is over then. */
  accept(line: Uint8Array): McpStep {
    if (++this.#messages > MAXIMUM_MCP_MESSAGES) refuse('session', `at most ${MAXIMUM_MCP_MESSAGES} messages`)
    const message = readMcpRequest(line)
    const admitted = ADMITTED[this.#state]
    if (!admitted.includes(message.method)) refuse('method', admitted.join(' or ') || 'no further message')
    return this.#answer(message)
  }

  #answer(message: McpRequest): McpStep {
    const { id, method, params } = message
    if (method === 'notifications/initialized') return this.#initialized(id, params)
    if (id === null) return refuse('id', `one for ${method}`)
    switch (method) {
      case 'initialize':
        return this.#initialize(id, params)
      case 'tools/call':
        return this.#call(id, params)
      case 'tools/list':
        checkMembers(params ?? {}, META_ONLY, 'tools/list params')
        this.#state = 'listed'
        return answer(id, this.#tools())
      default:
        checkMembers(params ?? {}, META_ONLY, 'ping params')
        return answer(id, {})
    }
  }

  #initialize(id: string, params: JsonMembers | null): McpStep {
    if (params?.['protocolVersion'] !== MCP_PROTOCOL_VERSION) {
      return refuse('protocolVersion', MCP_PROTOCOL_VERSION)
    }
    this.#state = 'initializing'
    return answer(id, {
      capabilities: { tools: {} },
      protocolVersion: MCP_PROTOCOL_VERSION,
      serverInfo: { name: SERVER_NAME, version: this.#options.version },
    })
  }

  #initialized(id: string | null, params: JsonMembers | null): McpStep {
    if (id !== null) refuse('id', 'none for a notification')
    checkMembers(params ?? {}, META_ONLY, 'notifications/initialized params')
    this.#state = 'ready'
    return { kind: 'nothing' }
  }

  #tools(): JsonMembers {
    const annotations = {
      destructiveHint: true,
      idempotentHint: false,
      openWorldHint: false,
      readOnlyHint: false,
    }
    const inputSchema = { type: 'object' }
    return { tools: [{ annotations, description: DESCRIPTION, inputSchema, name: this.#options.toolName }] }
  }

  #call(id: string, params: JsonMembers | null): McpStep {
    if (params === null) return refuse('tools/call params', 'an object')
    checkMembers(params, CALL_MEMBERS, 'tools/call params')
    if (params['name'] !== this.#options.toolName) return refuse('tools/call name', 'the listed tool')
    const { _meta: meta, arguments: members } = params
    if (meta !== undefined && !isMembers(meta)) return refuse('_meta', 'an object')
    if (!isMembers(members)) return refuse('tools/call arguments', 'an execute request')
    this.#state = 'called'
    const request = decode(BrokerExecuteRequest, canonicalBytes(members), 'tools/call arguments')
    return { kind: 'call', id, request }
  }
}

function answer(id: string, result: JsonMembers): McpStep {
  return { kind: 'answer', line: resultLine(id, canonicalBytes(result)) }
}

function refuse(member: string, expected: string): never {
  throw new BrokerError('invalid_request', `MCP ${member} refused: expected ${expected}`)
}
