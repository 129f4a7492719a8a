// Lines of MCP under their bound, and what a request may look like: one more byte, member or kind is refused.
import { describe, expect, test } from 'vitest'
import { MAXIMUM_MCP_MESSAGE_BYTES, McpLines, readMcpRequest, resultLine } from '../../client/mcp-message.js'
import { codeOf } from '../support/descriptors.js'

const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString()
const read = (line: string) => readMcpRequest(Buffer.from(line))

describe('the lines of a stream', () => {
  test.each([1, 2, 3, 7, 100])('come whole, however they were cut (%i bytes a piece)', size => {
    const stream = Buffer.from('{"a":1}\n\n{"größe":"😀"}\nrest')
    const lines = new McpLines(64)
    const found: string[] = []
    for (let at = 0; at < stream.length; at += size) {
      for (const line of lines.push(stream.subarray(at, at + size))) found.push(text(line))
    }
    expect(found).toEqual(['{"a":1}', '', '{"größe":"😀"}'])
    expect(lines.isInside).toBe(true)
  })

  test('do not change when their buffer is used again', () => {
    const lines = new McpLines(64)
    const buffer = Buffer.from('abc')
    expect([...lines.push(buffer)]).toEqual([])
    buffer.fill(0)
    expect([...lines.push(Buffer.from('d\n'))].map(text)).toEqual(['abcd'])
  })

  test('may be as long as the bound with their newline, and not one byte longer', async () => {
    const whole = Buffer.alloc(MAXIMUM_MCP_MESSAGE_BYTES, 'x')
    whole[whole.length - 1] = 0x0a
    expect([...new McpLines(MAXIMUM_MCP_MESSAGE_BYTES).push(whole)]).toHaveLength(1)
    const longer = Buffer.concat([Buffer.from('x'), whole])
    const push = (bytes: Buffer) => codeOf(() => [...new McpLines(MAXIMUM_MCP_MESSAGE_BYTES).push(bytes)])
    expect(await push(longer)).toBe('invalid_request')
    expect(await push(Buffer.alloc(MAXIMUM_MCP_MESSAGE_BYTES, 'x'))).toBe('invalid_request')
    expect(await push(Buffer.alloc(MAXIMUM_MCP_MESSAGE_BYTES - 1, 'x'))).toBeUndefined()
  })

  test('come before the fault of a later one is met', () => {
    const lines = new McpLines(4).push(Buffer.from('ab\ntoo long\n'))
    expect(text(lines.next().value as Uint8Array)).toBe('ab')
    expect(() => lines.next()).toThrow(/at most 4 bytes/)
  })
})

describe('a request', () => {
  test.each([
    ['0', '0'],
    ['-9223372036854775808', '-9223372036854775808'],
    ['18446744073709551615', '18446744073709551615'],
    ['9007199254740993', '9007199254740993'],
    ['"a\\u0062"', '"ab"'],
    ['""', '""'],
  ])('keeps its id %s', (spelt, kept) => {
    expect(read(`{"jsonrpc":"2.0","id":${spelt},"method":"ping"}`).id).toBe(kept)
    expect(text(resultLine(kept, Buffer.from('{}')))).toBe(`{"id":${kept},"jsonrpc":"2.0","result":{}}\n`)
  })

  test.each(['null', 'true', '1.5', '[1]', '{}', '18446744073709551616', '-9223372036854775809', '1e400'])(
    'is refused with the id %s',
    async id => {
      expect(await codeOf(() => read(`{"jsonrpc":"2.0","id":${id},"method":"ping"}`))).toBe('invalid_request')
    },
  )

  test.each([
    ['no JSON', 'ping'],
    ['an empty line', ''],
    ['a batch', '[{"jsonrpc":"2.0","id":1,"method":"ping"}]'],
    ['a member twice', '{"jsonrpc":"2.0","id":1,"id":1,"method":"ping"}'],
    ['a member of its own', '{"jsonrpc":"2.0","id":1,"method":"ping","extra":0}'],
    ['another version', '{"jsonrpc":"1.0","id":1,"method":"ping"}'],
    ['no version', '{"id":1,"method":"ping"}'],
    ['no method', '{"jsonrpc":"2.0","id":1}'],
    ['params in a list', '{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}'],
    ['a result', '{"jsonrpc":"2.0","id":1,"result":{}}'],
    ['a byte order mark', '\ufeff{"jsonrpc":"2.0","id":1,"method":"ping"}'],
  ])('is refused with %s', async (_what, line) => {
    expect(await codeOf(() => read(line))).toBe('invalid_request')
  })
})
