#!/usr/bin/env node
// chio-broker-mcp: the MCP server inside a cage. One session on standard input and output, one call, which goes out on
// descriptor 8. Success is one verified result and exit 0; anything else is one line of standard error and exit 1.
// Loads nothing but node, protocol/ and its own pieces: it starts for each call, and what it loads must be in the cage.
// Source: the fixed arguments, bounds and exits of chio-broker-mcp.
import { readFileSync, readSync, writeSync } from 'node:fs'
import { assertSocket, callBroker, type StreamPins } from '../client/mcp-call.js'
import {
  MAXIMUM_MCP_MESSAGE_BYTES,
  MAXIMUM_TOOL_NAME_BYTES,
  McpLines,
  resultLine,
} from '../client/mcp-message.js'
import { McpSession, type McpStep } from '../client/mcp-session.js'
import { type Codec, decode, encode, identifier } from '../protocol/codec.js'
import { BrokerError, isBrokerError } from '../protocol/errors.js'
import { admitPublicKey } from '../protocol/keys.js'

const STREAM = 8
const READ_BYTES = 65_536
const OPTIONS = ['--receipt-signer', '--tenant-scope', '--tool-name']

interface Arguments extends StreamPins {
  readonly toolName: string
}

function readArguments(argv: readonly string[]): Arguments {
  const given = new Map<string, string>()
  for (let at = 0; at < argv.length; at += 2) {
    const [option = '', value] = argv.slice(at, at + 2)
    if (!OPTIONS.includes(option) || given.has(option) || value === undefined) throw misused()
    given.set(option, value)
  }
  const value = (option: string): string => {
    const text = given.get(option)
    if (text === undefined) throw misused()
    return text
  }
  return {
    descriptor: STREAM,
    receiptSigner: admitPublicKey(value('--receipt-signer'), '--receipt-signer'),
    tenantScope: checked(identifier(), value('--tenant-scope')),
    toolName: checked(identifier(MAXIMUM_TOOL_NAME_BYTES), value('--tool-name')),
  }
}

function checked(codec: Codec<string>, text: string): string {
  return decode(codec, encode(codec, text), 'argument')
}

function misused(): BrokerError {
  return new BrokerError('invalid_request', `arguments refused: expected ${OPTIONS.join(', ')}, each once`)
}

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

function call({ id, request }: Extract<McpStep, { kind: 'call' }>, pins: StreamPins): Uint8Array {
  const response = callBroker(request, pins)
  const result = ['{"content":[],"isError":false,"structuredContent":', response, '}']
  return resultLine(id, Buffer.concat(result.map(part => Buffer.from(part))))
}

function serve(options: Arguments): void {
  const session = new McpSession({ toolName: options.toolName, version: ownVersion() })
  for (const line of incomingLines()) {
    const step = session.accept(line)
    if (step.kind === 'call') return writeOut(call(step, options))
    if (step.kind === 'answer') writeOut(step.line)
  }
}

function main(): void {
  if (process.platform !== 'linux') throw new BrokerError('unsupported_platform', 'expected Linux')
  const options = readArguments(process.argv.slice(2))
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
