// A proof of possession: which statement is signed, that any other call, key or time is refused by its member, and the
// first thing that is wrong is the one that is named.
import { createPrivateKey, sign } from 'node:crypto'
import { expect, test } from 'vitest'
import { isBrokerError } from '../../protocol/errors.js'
import type { JsonValue } from '../../protocol/json.js'
import { signingKey } from '../../protocol/keys.js'
import { type PossessionMembers, signPossession, verifyPossession } from '../../protocol/possession-proof.js'
import { valueHash } from '../../protocol/kernel-receipt.js'

const NOW = 1_700_000_000
const SEED = new Uint8Array(32).fill(9)
const agent = signingKey(SEED)
const stranger = signingKey(new Uint8Array(32).fill(10))
const pins = {
  action_hash: valueHash({ path: '/tmp/demo' }),
  agent_key: agent.publicKey,
  capability_id: 'cap-123',
  tool_name: 'read_file',
  tool_server: 'hosted-mcp',
}
const proofOf = (changes: Partial<PossessionMembers> = {}, key = agent) =>
  signPossession({ ...pins, issued_at: NOW, nonce: 'test-nonce', ...changes }, key)

function refusalOf(presented: JsonValue, now = NOW): string {
  try {
    verifyPossession(presented, pins, now)
  } catch (error) {
    if (isBrokerError(error)) return `${error.code}: ${error.message}`
    throw error
  }
  return 'verified'
}

test('the signature covers the canonical body alone, as another program computes it', () => {
  const body = `{"action_hash":"${pins.action_hash}","agent_key":"${agent.publicKey}","capability_id":"cap-123","issued_at":${NOW},"nonce":"test-nonce","schema":"chio.dpop_proof.v1","tool_name":"read_file","tool_server":"hosted-mcp"}`
  const prefix = Buffer.from('302e020100300506032b657004220420', 'hex')
  const key = createPrivateKey({ format: 'der', key: Buffer.concat([prefix, SEED]), type: 'pkcs8' })
  const signature = sign(null, Buffer.from(body), key).toString('hex')
  expect(proofOf()).toEqual({ body: JSON.parse(body) as JsonValue, signature })
  expect(refusalOf(proofOf())).toBe('verified')
})

test.each<[string, JsonValue, string]>([
  ['no proof at all', 'a proof', 'form'],
  ['another schema', { ...proofOf(), schema: 'chio.dpop_proof.v2' }, 'form'],
  ['another key', proofOf({ agent_key: stranger.publicKey }, stranger), 'agent_key'],
  ['another capability', proofOf({ capability_id: 'cap-124' }), 'capability_id'],
  ['another server', proofOf({ tool_server: 'other' }), 'tool_server'],
  ['another tool', proofOf({ tool_name: 'write_file' }), 'tool_name'],
  ['other arguments', proofOf({ action_hash: valueHash({ path: '/tmp/other' }) }), 'action_hash'],
  ['a signature of another', { ...proofOf(), signature: '0'.repeat(128) }, 'signature'],
])('%s is refused by name', (_what, presented, member) => {
  expect(refusalOf(presented)).toMatch(
    new RegExp(`^possession_denied: proof of possession ${member} refused`),
  )
})

test('a proof lives for 300 seconds, the last one with them, and 30 seconds before its issue', () => {
  expect(refusalOf(proofOf(), NOW + 300)).toBe('verified')
  expect(refusalOf(proofOf(), NOW + 301)).toMatch(/issued_at/)
  expect(refusalOf(proofOf(), NOW - 30)).toBe('verified')
  expect(refusalOf(proofOf(), NOW - 31)).toMatch(/issued_at/)
})

test('nobody signs for a key of another', () => {
  expect(() => proofOf({}, stranger)).toThrow(RangeError)
})
