// The command line of chio-broker-mcp: three arguments, each once. Anything else is refused before a descriptor is met.
import { describe, expect, test } from 'vitest'
import { readMcpArguments } from '../../client/mcp-arguments.js'
import { ARGUMENTS } from '../support/broker-mcp.js'
import { codeOf } from '../support/descriptors.js'
import { TOOL_NAME } from '../support/mcp-messages.js'
import { OWN_KEYS, TENANT } from '../support/own-request.js'

const without = (option: string): string[] =>
  ARGUMENTS.filter((one, at) => one !== option && ARGUMENTS[at - 1] !== option)
const withValue = (option: string, value: string): string[] => [...without(option), option, value]
const options = ['--tenant-scope', '--tool-name', '--receipt-signer']

describe('the arguments', () => {
  test('are three, in any order', () => {
    const wanted = { tenantScope: TENANT, toolName: TOOL_NAME, receiptSigner: OWN_KEYS.receipt.publicKey }
    expect(readMcpArguments(ARGUMENTS)).toEqual(wanted)
    const [a = '', b = '', ...rest] = ARGUMENTS
    expect(readMcpArguments([...rest, a, b])).toEqual(wanted)
  })

  test.each<[string, readonly string[], string]>([
    ['none', [], 'invalid_request'],
    ...options.map((one): [string, string[], string] => [`no ${one}`, without(one), 'invalid_request']),
    ...options.map((one): [string, string[], string] => [
      `${one} twice`,
      [...ARGUMENTS, ...ARGUMENTS.slice(ARGUMENTS.indexOf(one)).slice(0, 2)],
      'invalid_request',
    ]),
    ['another', [...ARGUMENTS, '--verbose', '1'], 'invalid_request'],
    ['a bare word', [...ARGUMENTS, 'word'], 'invalid_request'],
    ['an option without its value', ARGUMENTS.slice(0, -1), 'invalid_request'],
    ['an option joined by =', [...without('--tool-name'), '--tool-name=execute'], 'invalid_request'],
    ['an empty tool name', withValue('--tool-name', ''), 'invalid_request'],
    ['a tool name of 129 bytes', withValue('--tool-name', 'n'.repeat(129)), 'invalid_request'],
    ['a tool name with a control character', withValue('--tool-name', 'a\nb'), 'invalid_request'],
    ['a tenant of 513 bytes', withValue('--tenant-scope', 't'.repeat(513)), 'invalid_request'],
    ['a key of other letters', withValue('--receipt-signer', 'receipt'), 'invalid_key'],
    ['a weak key', withValue('--receipt-signer', '0'.repeat(64)), 'weak_key'],
  ])('are refused: %s', async (_what, argv, code) => {
    expect(await codeOf(() => readMcpArguments(argv))).toBe(code)
  })

  test('may be as long as their bounds', () => {
    expect(readMcpArguments(withValue('--tool-name', 'n'.repeat(128))).toolName).toHaveLength(128)
    expect(readMcpArguments(withValue('--tenant-scope', 't'.repeat(512))).tenantScope).toHaveLength(512)
  })
})
