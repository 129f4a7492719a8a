#!/usr/bin/env node
// chio-broker-mcp: the MCP server inside a cage. One session on standard input and output, one call, which goes out on
// descriptor 8. Success is one verified result and exit 0; anything else is one line of standard error and exit 1.
// Loads nothing but node, protocol/ and its own pieces: it starts for each call, and what it loads must be in the cage.
// Source: the fixed arguments, bounds and exits of chio-broker-mcp.
import { readFileSync, readSync, writeSync } from 'node:fs'
import { type McpArguments, readMcpArguments } from '../client/mcp-arguments.js'
import { assertSocket, callBroker, type StreamPins } from '../client/mcp-call.js'
import { MAXIMUM_MCP_MESSAGE_BYTES, McpLines, resultLine } from '../client/mcp-message.js'
import { McpSession, type McpStep } from '../client/mcp-session.js'
import { BrokerError, isBrokerError } from '../protocol/errors.js'

const STREAM = 8
const READ_BYTES = 65_536

/** The package's own version: its manifest lies two folders above the compiled file, in the cage as well. */
function ownVersion(): string {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8')
  return (JSON.parse(text) as { version: string }).version
}

function writeOut(line: Uint8Array): void {
  for (let done = 0; done < line.length; ) done += writeSync(1, line, done)
}

function* incomingLines(): Generator<Uint8Array> {
  const lines = new McpLines(MAXIMUM_MCP_MESSAGE_BYTES)
  const buffer = Buffer.alloc(READ_BYTES)
  for (;;) {
    const count = readSync(0, buffer)
    if (count === 0) throw new BrokerError('invalid_request', 'session refused: expected a call, got its end')
    yield* lines.push(buffer.subarray(0, count))
  }
}

function callResult({ id, request }: Extract<McpStep, { kind: 'call' }>, pins: StreamPins): Uint8Array {
  const response = callBroker(request, pins)
  const result = ['{"content":[],"isError":false,"structuredContent":', response, '}']
  return resultLine(id, Buffer.concat(result.map(part => Buffer.from(part))))
}

function serve(options: McpArguments): void {
  const session = new McpSession({ toolName: options.toolName, version: ownVersion() })
  for (const line of incomingLines()) {
    const step = session.accept(line)
    if (step.kind === 'call') return writeOut(callResult(step, { ...options, descriptor: STREAM }))
    if (step.kind === 'answer') writeOut(step.line)
  }
}

function main(): void {
  if (process.platform !== 'linux') throw new BrokerError('unsupported_platform', 'expected Linux')
  const options = readMcpArguments(process.argv.slice(2))
  assertSocket(STREAM)
  serve(options)
}

try {
  main()
} catch (error) {
  // Only the code: a sentence could quote what a peer sent.
  const code = isBrokerError(error) ? error.code : 'invariant'
  writeSync(2, `chio-broker-mcp failed closed: ${code}\n`)
  process.exitCode = 1
}
