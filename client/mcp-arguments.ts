// The three arguments of chio-broker-mcp: each exactly once, in any order, and nothing else.
// They say whose frames it builds and whose signature it believes; nothing that a peer sends can replace them.
// Source: the fixed command line of chio-broker-mcp.
import { canonicalBytes } from '../protocol/canonical.js'
import { decode, identifier } from '../protocol/codec.js'
import { BrokerError } from '../protocol/errors.js'
import { admitPublicKey, type PublicKey } from '../protocol/keys.js'
import { MAXIMUM_IDENTIFIER_BYTES } from '../protocol/limits.js'
import { MAXIMUM_TOOL_NAME_BYTES } from './mcp-message.js'

export interface McpArguments {
  readonly receiptSigner: PublicKey
  readonly tenantScope: string
  readonly toolName: string
}

const OPTIONS = ['--receipt-signer', '--tenant-scope', '--tool-name']

/** @throws BrokerError `invalid_request`, or the key's own refusal. */
export function readMcpArguments(argv: readonly string[]): McpArguments {
  const given = new Map<string, string>()
  for (let at = 0; at < argv.length; at += 2) {
    const [option = '', value] = argv.slice(at, at + 2)
    if (!OPTIONS.includes(option) || given.has(option) || value === undefined) throw misused()
    given.set(option, value)
  }
  const text = (option: string): string => {
    const value = given.get(option)
    if (value === undefined) throw misused()
    return value
  }
  return {
    receiptSigner: admitPublicKey(text('--receipt-signer'), '--receipt-signer'),
    tenantScope: identifierOf(text('--tenant-scope'), MAXIMUM_IDENTIFIER_BYTES),
    toolName: identifierOf(text('--tool-name'), MAXIMUM_TOOL_NAME_BYTES),
  }
}

function identifierOf(text: string, maximumBytes: number): string {
  return decode(identifier(maximumBytes), canonicalBytes(text), 'argument')
}

function misused(): BrokerError {
  return new BrokerError('invalid_request', `arguments refused: expected ${OPTIONS.join(', ')}, each once`)
}
