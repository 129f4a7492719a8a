// The host's side of the one-call MCP session: it asks a server that it does not trust, bounded in bytes, messages and
// time, and keeps from the answer only whether it stands. The outcome of the operation is the broker's record; nothing
// here can change it. A server that leaves the sequence is killed, which closes its stream.
// Source: Model Context Protocol 2025-11-25, lifecycle, tools, stdio transport; the wrapper's rules of chio-broker-mcp.
import type { RunningCage } from '../cage/index.js'
import {
  MAXIMUM_MCP_MESSAGE_BYTES,
  MCP_PROTOCOL_VERSION,
  McpLines,
  messageLine,
} from '../client/mcp-message.js'
import { encode } from '../protocol/codec.js'
import { BrokerError, isBrokerError } from '../protocol/errors.js'
import { BrokerExecuteRequest } from '../protocol/execute-request.js'
import {
  type AskedCall,
  checkAnswer,
  listedTool,
  type McpReply,
  openedSession,
  readReply,
} from './mcp-reply.js'

/** What a server's answer came to. Its word is never the outcome. */
export type McpVerdict =
  | { readonly kind: 'verified' }
  /** `sentence` says what was expected; it quotes nothing of the server. */
  | { readonly kind: 'refused'; readonly sentence: string }

export interface McpBounds {
  /** From the start of the server until it has listed its tool. */
  readonly openingMs: number
  /** From the call until its answer; the broker's record has bounds of its own. */
  readonly callMs: number
}

/** An interpreter may need seconds to start on a busy machine; the stream lives 30. */
export const MCP_OPENING_MS = 15_000
/** There are three answers; a server may log beside them, through notifications. */
const MAXIMUM_SERVER_MESSAGES = 64
/** A byte of a body is at most three digits, a comma and a space; evidence, receipt and text fit beside it. */
const BYTES_PER_BODY_BYTE = 6
const BYTES_BESIDE_BODY = 256 * 1024

const CLIENT = { name: 'chio', version: '1' }
const INITIALIZE_ID = 1
const LIST_ID = 2
const CALL_ID = 3

type Step = 'initialize' | 'tools/list' | 'tools/call'
const IDS: Record<Step, number> = { initialize: INITIALIZE_ID, 'tools/list': LIST_ID, 'tools/call': CALL_ID }

/** The call as it leaves; made before anything is started, because one that is too long cannot be sent at all. */
export function callLine(request: BrokerExecuteRequest, toolName: string): Uint8Array {
  const params = [
    `{"arguments":`,
    encode(BrokerExecuteRequest, request),
    `,"name":${JSON.stringify(toolName)}}`,
  ]
  const head = `{"id":${CALL_ID},"jsonrpc":"2.0","method":"tools/call","params":`
  return Buffer.concat([head, ...params, '}\n'].map(part => Buffer.from(part)))
}

/** Room for the longest name of a tool, each character escaped. */
const NAME_ROOM_BYTES = 1_024

/** @throws BrokerError `invalid_request` when the call of a request would be longer than a server takes. */
export function assertCallFits(request: BrokerExecuteRequest): void {
  const bytes = callLine(request, '').length + NAME_ROOM_BYTES
  if (bytes <= MAXIMUM_MCP_MESSAGE_BYTES) return
  throw new BrokerError(
    'invalid_request',
    `MCP call refused: expected at most ${MAXIMUM_MCP_MESSAGE_BYTES} bytes, got ${bytes}; shorten the body or run a tool without --mcp`,
  )
}

/** Speaks with one server, from its start to its answer. */
export class McpCall {
  readonly verdict: Promise<McpVerdict>
  readonly #running: RunningCage
  readonly #asked: AskedCall
  readonly #bounds: McpBounds
  readonly #settle: (verdict: McpVerdict) => void
  readonly #lines: McpLines
  readonly #maximumBytes: number
  #step: Step = 'initialize'
  #bytes = 0
  #messages = 0
  #isOver = false
  #timer: NodeJS.Timeout

  /** @param running a cage whose policy gave it an input pipe; nothing of its output has been read yet */
  constructor(running: RunningCage, asked: AskedCall, bounds: McpBounds) {
    const { responseLimitBytes } = asked.context.request.request.options
    const lineBytes = BYTES_BESIDE_BODY + BYTES_PER_BODY_BYTE * responseLimitBytes
    this.#running = running
    this.#asked = asked
    this.#bounds = bounds
    this.#lines = new McpLines(lineBytes)
    this.#maximumBytes = lineBytes + MAXIMUM_MCP_MESSAGE_BYTES
    let settle: (verdict: McpVerdict) => void = () => undefined
    this.verdict = new Promise(resolve => (settle = resolve))
    this.#settle = settle
    this.#timer = this.#within(bounds.openingMs)
    running.stdout.onChunk(chunk => this.#read(chunk))
    void running.stdout.ended.then(() => this.#refuse(refused('an answer before its end')))
    this.#ask('initialize', {
      capabilities: {},
      clientInfo: CLIENT,
      protocolVersion: MCP_PROTOCOL_VERSION,
    })
  }

  #within(limitMs: number): NodeJS.Timeout {
    return setTimeout(() => {
      this.#refuse(refused(`an answer to ${this.#step} within ${limitMs} ms`))
    }, limitMs)
  }

  #read(chunk: Uint8Array): void {
    if (this.#isOver) return
    try {
      this.#bytes += chunk.length
      if (this.#bytes > this.#maximumBytes) throw refused(`at most ${this.#maximumBytes} bytes in all`)
      for (const line of this.#lines.push(chunk)) {
        this.#take(readReply(line))
        if (this.#isOver) return
      }
    } catch (error) {
      this.#refuse(isBrokerError(error) ? error : refused('another answer'))
    }
  }

  #take(reply: McpReply): void {
    if (++this.#messages > MAXIMUM_SERVER_MESSAGES) {
      throw refused(`at most ${MAXIMUM_SERVER_MESSAGES} messages`)
    }
    if (reply.kind === 'notification') return
    if (reply.id !== IDS[this.#step]) throw refused(`an answer to ${this.#step} alone`)
    switch (this.#step) {
      case 'initialize':
        openedSession(reply.result)
        this.#send(messageLine({ jsonrpc: '2.0', method: 'notifications/initialized' }))
        return this.#ask('tools/list', {})
      case 'tools/list':
        return this.#call(listedTool(reply.result))
      case 'tools/call':
        checkAnswer(reply.result, this.#asked)
        return this.#end({ kind: 'verified' })
    }
  }

  #ask(method: Step, params: { readonly [key: string]: string | object }): void {
    this.#step = method
    this.#send(messageLine({ id: IDS[method], jsonrpc: '2.0', method, params: params as never }))
  }

  #call(toolName: string): void {
    this.#step = 'tools/call'
    clearTimeout(this.#timer)
    this.#timer = this.#within(this.#bounds.callMs)
    this.#send(callLine(this.#asked.context.request, toolName))
  }

  #send(line: Uint8Array): void {
    this.#running.input?.write(line)
  }

  #refuse(error: BrokerError): void {
    if (this.#isOver) return
    this.#end({ kind: 'refused', sentence: error.message })
    this.#running.close()
  }

  /** A server that waits for the end of its input learns it here; what else it says is not read. */
  #end(verdict: McpVerdict): void {
    this.#isOver = true
    clearTimeout(this.#timer)
    this.#running.input?.end()
    this.#settle(verdict)
  }
}

function refused(expected: string): BrokerError {
  return new BrokerError('invalid_request', `MCP server refused: expected ${expected}`)
}
