// The one-call session of chio-broker-mcp: the sequence, what each message may hold, how many there may be. Whatever
// is out of place ends it.
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { MAXIMUM_MCP_MESSAGES } from '../../client/mcp-message.js'
import { McpSession, type McpStep } from '../../client/mcp-session.js'
import { FULL_RUN_TIMEOUT_MS, fullCount } from '../support/counts.js'
import { codeOf } from '../support/descriptors.js'
import {
  call,
  callArguments,
  initialize,
  initialized,
  linesOf,
  list,
  ping,
  session,
  TOOL_NAME,
} from '../support/mcp-messages.js'
import { execute } from '../support/own-request.js'

type Message = Readonly<Record<string, unknown>>

const newSession = () => new McpSession({ toolName: TOOL_NAME, version: '9.9.9' })

function take(messages: readonly Message[], on = newSession()) {
  return messages.map(message => on.accept(linesOf([message]).subarray(0, -1)))
}

const refusal = (messages: readonly Message[]) => codeOf(() => take(messages))
const answers = (messages: readonly Message[]) =>
  take(messages).map(step =>
    step.kind === 'answer' ? (JSON.parse(String(step.line)) as Message) : step.kind,
  )

describe('the sequence', () => {
  test('is initialize, initialized, list, call', () => {
    const [opened, nothing, listed, called] = take(session)
    expect(JSON.parse(String((opened as { line: Uint8Array }).line))).toEqual({
      jsonrpc: '2.0',
      id: 0,
      result: {
        protocolVersion: '2025-11-25',
        capabilities: { tools: {} },
        serverInfo: { name: 'chio-broker-mcp', version: '9.9.9' },
      },
    })
    expect(nothing).toEqual({ kind: 'nothing' })
    expect(JSON.parse(String((listed as { line: Uint8Array }).line))).toEqual({
      jsonrpc: '2.0',
      id: 1,
      result: {
        tools: [
          {
            name: TOOL_NAME,
            description: expect.stringMatching(/^[A-Z].*\.$/) as string,
            inputSchema: { type: 'object' },
            annotations: {
              readOnlyHint: false,
              destructiveHint: true,
              idempotentHint: false,
              openWorldHint: false,
            },
          },
        ],
      },
    })
    expect(called).toEqual({ kind: 'call', id: '2', request: execute })
  })

  test('may list again, and ping once it is open', () => {
    const said = answers([initialize, initialized, ping, list, ping, list])
    expect(said.slice(2)).toMatchObject([
      { id: 'p', result: {} },
      { id: 1, result: { tools: [{}] } },
      { id: 'p', result: {} },
      { id: 1, result: { tools: [{}] } },
    ])
  })

  test.each<[string, readonly Message[]]>([
    ['anything before initialize', [ping]],
    ['a list before initialize', [list]],
    ['a call before initialize', [call]],
    ['a second initialize', [initialize, initialize]],
    ['a ping before initialized', [initialize, ping]],
    ['a list before initialized', [initialize, list]],
    ['initialized before initialize', [initialized]],
    ['initialized again', [initialize, initialized, initialized]],
    ['a call without a list', [initialize, initialized, call]],
    ['a second call', [...session, call]],
    ['a ping after the call', [...session, ping]],
    ['another method', [initialize, initialized, { ...list, method: 'resources/list' }]],
    [
      'another notification',
      [initialize, initialized, { jsonrpc: '2.0', method: 'notifications/cancelled' }],
    ],
  ])('does not admit %s', async (_what, messages) => {
    expect(await refusal(messages)).toBe('invalid_request')
  })

  test(`holds ${MAXIMUM_MCP_MESSAGES} messages and not one more`, async () => {
    const pings = (count: number) => Array.from({ length: count }, () => ping)
    const head = [initialize, initialized, list]
    const room = MAXIMUM_MCP_MESSAGES - head.length - 1
    expect(take([...head, ...pings(room), call]).at(-1)?.kind).toBe('call')
    expect(await refusal([...head, ...pings(room + 1), call])).toBe('invalid_request')
  })
})

const changed = (message: Message, members: Message): Message => ({ ...message, ...members })
const withParams = (message: Message, params: unknown): Message => ({ ...message, params })
const callWith = (params: Message): readonly Message[] => [
  initialize,
  initialized,
  list,
  withParams(call, { name: TOOL_NAME, arguments: callArguments, ...params }),
]
const [firstMember = ''] = Object.keys(callArguments)

test(
  'whatever a client writes is a step or a refusal of ours, and only the exact request is a call',
  () => {
    const lines = session.map(message => JSON.stringify(message))
    const place = fc.record({ line: fc.nat(3), at: fc.nat(3_000), drop: fc.nat(3) })
    const mutation = fc.tuple(
      place,
      fc.constantFrom('', '"', '{', '}', '[', ',', ':', '0', '-', 'e9', '\\', '\u0000', '\u00e9'),
    )
    fc.assert(
      fc.property(mutation, ([{ line, at, drop }, put]) => {
        const text = lines[line] ?? ''
        const changed = text.slice(0, at) + put + text.slice(at + drop)
        const [last, error] = outcomeOf(lines.with(line, changed))
        if (error !== undefined) expect(error).toMatchObject({ code: 'invalid_request' })
        if (last?.kind === 'call') expect(last.request.schema).toBe(execute.schema)
      }),
      { numRuns: fullCount(300, 20_000) },
    )
  },
  FULL_RUN_TIMEOUT_MS,
)

function outcomeOf(lines: readonly string[]): [McpStep | undefined, unknown] {
  const fresh = newSession()
  try {
    return [lines.map(line => fresh.accept(Buffer.from(line))).at(-1), undefined]
  } catch (error) {
    return [undefined, error]
  }
}

describe('a message', () => {
  test.each<[string, readonly Message[]]>([
    ['another protocol version', [withParams(initialize, { protocolVersion: '2025-06-18' })]],
    ['no protocol version', [withParams(initialize, {})]],
    ['initialize without params', [changed(initialize, { params: undefined })]],
    ['initialize as a notification', [changed(initialize, { id: undefined })]],
    ['initialized with an id', [initialize, changed(initialized, { id: 9 })]],
    ['a list as a notification', [initialize, initialized, changed(list, { id: undefined })]],
    ['a list with a cursor', [initialize, initialized, withParams(list, { cursor: 'x' })]],
    ['a call as a notification', [...session.slice(0, 3), changed(call, { id: undefined })]],
    ['a call without params', [...session.slice(0, 3), changed(call, { params: undefined })]],
    ['another tool', callWith({ name: 'other' })],
    ['a member beside name and arguments', callWith({ task: {} })],
    ['no arguments', callWith({ arguments: undefined })],
    ['arguments in a list', callWith({ arguments: [callArguments] })],
    ['a request with a member more', callWith({ arguments: { ...callArguments, more: 1 } })],
    ['a request with a member less', callWith({ arguments: { ...callArguments, [firstMember]: undefined } })],
    ['_meta that is no object', callWith({ _meta: 1 })],
  ])('is refused: %s', async (_what, messages) => {
    expect(await refusal(messages)).toBe('invalid_request')
  })

  test('may carry _meta', () => {
    expect(take(callWith({ _meta: { progressToken: 1 } })).at(-1)?.kind).toBe('call')
    expect(answers([initialize, initialized, withParams(list, { _meta: {} })]).at(-1)).toMatchObject({
      id: 1,
    })
  })

  test('may have its members in any order and any spacing', () => {
    const session4 = newSession()
    take([initialize, initialized, list], session4)
    const { jsonrpc, id, method } = call
    const reversed = Object.fromEntries(Object.entries(callArguments).reverse())
    const line = JSON.stringify({ params: { arguments: reversed, name: TOOL_NAME }, method, jsonrpc, id })
    expect(session4.accept(Buffer.from(` ${line.replaceAll('":', '" : ')} \r`)).kind).toBe('call')
  })
})
