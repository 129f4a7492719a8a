// One MCP message on standard input or output: a line of strict JSON under a bound, in both directions of the one
// call. Ids are echoed exactly as they were written. It must never repair, guess, or keep what is over its bound.
// Source: Model Context Protocol 2025-11-25, stdio transport; JSON-RPC 2.0.
import { CollectedBytes } from '../protocol/collected-bytes.js'
import { BrokerError } from '../protocol/errors.js'
import { type JsonValue, parseStrictJson } from '../protocol/json.js'

export const MCP_PROTOCOL_VERSION = '2025-11-25'
/** A message to the server, its newline included. */
export const MAXIMUM_MCP_MESSAGE_BYTES = 1_048_576
/** Messages to the server in one session. */
export const MAXIMUM_MCP_MESSAGES = 16
export const MAXIMUM_TOOL_NAME_BYTES = 128

const NEWLINE = 0x0a

export type JsonMembers = { readonly [key: string]: JsonValue }

/** Cuts a stream into lines. What is not ended by a newline is kept up to the bound. */
export class McpLines {
  readonly #maximumBytes: number
  readonly #kept = new CollectedBytes()

  /** @param maximumBytes of one line, its newline included */
  constructor(maximumBytes: number) {
    this.#maximumBytes = maximumBytes
  }

  /** Whether a line has begun and not ended. */
  get isInside(): boolean {
    return this.#kept.length > 0
  }

  /** The lines that this chunk completes, without their newlines, one by one: a fault is met only when reached. */
  *push(chunk: Uint8Array): Generator<Uint8Array> {
    let start = 0
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
      this.#kept.add(chunk.subarray(start, end))
      if (this.#kept.length + 1 > this.#maximumBytes) this.#refuse()
      start = end + 1
      yield this.#kept.take()
    }
    this.#kept.add(chunk.subarray(start))
    if (this.#kept.length >= this.#maximumBytes) this.#refuse()
  }

  #refuse(): never {
    this.#kept.drop()
    throw new BrokerError(
      'invalid_request',
      `MCP message refused: expected at most ${this.#maximumBytes} bytes with its newline, got more`,
    )
  }
}

/** A request or notification. `id` is its JSON spelling, null for a notification. */
export interface McpRequest {
  readonly id: string | null
  readonly method: string
  readonly params: JsonMembers | null
}

const REQUEST_MEMBERS: ReadonlySet<string> = new Set(['id', 'jsonrpc', 'method', 'params'])

/** Reads one request or notification. @throws BrokerError `invalid_request`. */
export function readMcpRequest(line: Uint8Array): McpRequest {
  const large = new WeakMap<object, string>()
  const message = parseStrictJson(line, 'MCP message', digits => {
    const place = {}
    large.set(place, digits)
    return place
  })
  if (!isMembers(message)) return refuse('message', 'an object')
  checkMembers(message, REQUEST_MEMBERS, 'message')
  const { id, jsonrpc, method, params } = message
  if (jsonrpc !== '2.0') return refuse('jsonrpc', '"2.0"')
  if (typeof method !== 'string') return refuse('method', 'a text')
  if (params !== undefined && !isMembers(params)) return refuse('params', 'an object')
  return { id: id === undefined ? null : idText(id, large), method, params: params ?? null }
}

const MINIMUM_ID = -(2n ** 63n)
const MAXIMUM_ID = 2n ** 64n - 1n

function idText(id: JsonValue, large: WeakMap<object, string>): string {
  if (typeof id === 'string') return JSON.stringify(id)
  if (typeof id === 'number' && Number.isInteger(id)) return String(id)
  const digits = typeof id === 'object' && id !== null ? large.get(id) : undefined
  if (digits === undefined || !/^-?\d+$/.test(digits)) return refuse('id', 'a text or an integer')
  const value = BigInt(digits)
  if (value < MINIMUM_ID || value > MAXIMUM_ID) return refuse('id', 'an integer of 64 bits')
  return digits
}

export function isMembers(value: JsonValue | undefined): value is JsonMembers {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export function checkMembers(value: JsonMembers, known: ReadonlySet<string>, what: string): void {
  if (Object.keys(value).some(key => !known.has(key))) refuse(what, `no member but ${[...known].join(', ')}`)
}

/** The line of a result. `result` is JSON already, so that verified bytes are passed on as they came. */
export function resultLine(id: string, result: Uint8Array): Uint8Array {
  return Buffer.concat([Buffer.from(`{"id":${id},"jsonrpc":"2.0","result":`), result, Buffer.from('}\n')])
}

/** The line of a message that is ours. */
export function messageLine(message: JsonValue): Uint8Array {
  return Buffer.from(`${JSON.stringify(message)}\n`)
}

function refuse(member: string, expected: string): never {
  throw new BrokerError('invalid_request', `MCP ${member} refused: expected ${expected}`)
}
