// The agent's request keeps its published bytes and frame, and takes approvals in one form alone.
import { describe, expect, test } from 'vitest'
import { canonicalBytes } from '../../protocol/canonical.js'
import { decode, encode } from '../../protocol/codec.js'
import { sha256Hex } from '../../protocol/digest.js'
import { encodeFrame } from '../../protocol/frame.js'
import type { JsonValue } from '../../protocol/json.js'
import { ToolCallRequest } from '../../protocol/tool-call.js'
import type { ThresholdProposal } from '../../protocol/threshold-proposal.js'
import { ToolCallResponse } from '../../protocol/tool-call-response.js'
import { tokenDocuments } from '../support/own-tokens.js'
import { describeVectors, readVectors } from '../support/vectors.js'

interface NativeFrame {
  readonly message: JsonValue
  readonly payload_octets: number
  readonly length_prefix_hex: string
  readonly payload_first_32_octets_hex: string
  readonly payload_sha256: string
}

describeVectors('the native frame', folder => {
  const { native_frame: frame } = readVectors<{ native_frame: NativeFrame }>(
    folder,
    'chio/draft-appendix-extra.json',
  )

  test('of the published request has its length, its beginning and its digest', () => {
    const request = decode(ToolCallRequest, canonicalBytes(frame.message), 'tool call request')
    const payload = encode(ToolCallRequest, request)
    expect(payload).toHaveLength(frame.payload_octets)
    expect(sha256Hex(payload)).toBe(frame.payload_sha256)
    const framed = Buffer.from(encodeFrame(payload)).toString('hex')
    expect(framed.slice(0, 72)).toBe(frame.length_prefix_hex + frame.payload_first_32_octets_hex)
  })
})

describe('a tool call response', () => {
  const own = tokenDocuments().find(({ name }) => name === 'tool-call-response-allowed')?.value
  const { receipt } = own as ToolCallResponse
  const text = (result: object) =>
    canonicalBytes({
      id: 'request-1',
      receipt: { ...receipt },
      result,
      type: 'tool_call_response',
    } as JsonValue)

  test.each<object>([
    { status: 'ok', value: null },
    { status: 'stream_complete', total_chunks: 3 },
    { chunks_received: 1, reason: 'stopped', status: 'cancelled' },
    { error: { code: 'capability_expired' }, status: 'err' },
    { error: { code: 'tool_server_error', detail: 'authorization_denied' }, status: 'err' },
  ])('may say %j', result => {
    expect(decode(ToolCallResponse, text(result), 'response').result).toEqual(result)
  })

  test.each<object>([
    { status: 'ok' },
    { error: { code: 'capability_denied' }, status: 'err' },
    { error: { code: 'unheard_of', detail: '' }, status: 'err' },
    { status: 'pending_approval' },
    { status: 'allowed', value: null },
  ])('may not say %j', result => {
    expect(() => decode(ToolCallResponse, text(result), 'response')).toThrow(/response refused/)
  })
})

describe('a tool call request', () => {
  const own = tokenDocuments().find(({ name }) => name === 'tool-call-request')?.value as ToolCallRequest
  const { approval_tokens: set, threshold_approval_proposal: proposal, ...bare } = own
  const text = (changes: object) =>
    canonicalBytes(JSON.parse(JSON.stringify({ ...plainOf(bare), ...changes })) as JsonValue)

  test('carries a set with its proposal, one approval, or none', () => {
    for (const changes of [
      { approval_tokens: set, threshold_approval_proposal: proposal },
      { approval_token: set?.[0] },
      {},
    ]) {
      expect(() => decode(ToolCallRequest, text(changes), 'request')).not.toThrow()
    }
  })

  test.each<[string, object, RegExp]>([
    [
      'one approval beside a set',
      { approval_token: set?.[0], approval_tokens: set, threshold_approval_proposal: proposal },
      /none beside/,
    ],
    ['a set without its proposal', { approval_tokens: set }, /exactly where/],
    ['a proposal without a set', { threshold_approval_proposal: proposal }, /exactly where/],
    ['an empty set', { approval_tokens: [] }, /at least 1/],
    ['an unknown member', { surplus: 1 }, /refused/],
  ])('is refused with %s', (_what, changes, sentence) => {
    expect(() => decode(ToolCallRequest, text(changes), 'request')).toThrow(sentence)
  })

  /** Byte strings as the wire writes them. */
  function plainOf(request: object): object {
    return JSON.parse(
      JSON.stringify(request, (_key, value: unknown) => (value instanceof Uint8Array ? [...value] : value)),
    ) as object
  }
})

interface Schema {
  readonly required: readonly string[]
  readonly properties: Readonly<Record<string, unknown>>
}

describeVectors('the published schemas', folder => {
  const schemaOf = (...path: string[]) => readVectors<Schema>(folder, 'chio/schemas/chio-wire/v1', ...path)
  const membersOf = (name: string): string[] =>
    Object.keys(tokenDocuments().find(document => document.name === name)?.value as object)

  test('of the tool call request know every member that ours may have', () => {
    const { properties, required } = schemaOf('agent', 'tool_call_request.schema.json')
    const optional = ['approval_token', 'approval_tokens', 'governed_intent', 'supplemental_authorization']
    expect(Object.keys(properties).sort()).toEqual(
      [...required, ...optional, 'threshold_approval_proposal'].sort(),
    )
    expect(membersOf('tool-call-request').filter(member => properties[member] === undefined)).toEqual([])
  })

  test('of the approval token ask for our members, and for the proposal where there is one', () => {
    const { properties, required } = schemaOf('capability', 'governed-approval-token.schema.json')
    expect(membersOf('approval-token').sort()).toEqual([...required, 'threshold_proposal_hash'].sort())
    expect(Object.keys(properties).sort()).toEqual([...membersOf('approval-token'), 'algorithm'].sort())
  })

  test('of the threshold proposal describe its flat form: the nested one says the same under other names', () => {
    const { required } = schemaOf('capability', 'threshold-approval-proposal.schema.json')
    const renamed: Record<string, string> = {
      authorizing_capability_digest: 'authorizationCapabilityHash',
      policy_authority: 'policyAuthority',
      threshold: 'required',
    }
    const camel = (name: string) =>
      name.replace(/_([a-z])/g, (_match, letter: string) => letter.toUpperCase())
    const own = tokenDocuments().find(({ name }) => name === 'threshold-proposal')?.value
    const { body, ...envelope } = own as ThresholdProposal
    const ours = [...Object.keys(body), ...Object.keys(envelope)]
    expect(required.map(name => renamed[name] ?? camel(name)).sort()).toEqual(ours.sort())
  })
})
