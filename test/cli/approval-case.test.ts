// What an approver reads of a tool call: what would be done, and names that an agent chose so that two that differ never
// look alike.
import { expect, test } from 'vitest'
import { caseLines } from '../../cli/approval-case.js'
import type { ApprovalCase } from '../../protocol/approval-rpc.js'
import { toolCallIntent } from '../../protocol/governed-intent.js'

const DIGEST = 'd'.repeat(64)

function shown(tool_name: string): string[] {
  const intent = toolCallIntent({
    agent_public_key: 'a'.repeat(64),
    arguments_bytes: 23,
    arguments_sha256: 'b'.repeat(64),
    capability_id: 'capability-1',
    maximum_cost: { currency: 'EUR', units: 7 },
    operation_id: DIGEST,
    request_hash: 'c'.repeat(64),
    request_id: 'call-1',
    server_id: 'notes',
    tenant_id: 'tenant',
    tool_name,
  })
  const proposal = { body: { governedIntentHash: 'e'.repeat(64), proposalDeadline: 1_800_000_000 } }
  const view = { approved: 1, operationId: DIGEST, required: 2, state: 'approval_required' }
  return caseLines({ approvers: [], intent, proposal, spoken: [], view } as unknown as ApprovalCase)
}

test('a tool call is shown by server, tool, size and hash of its arguments, and the most that it may cost', () => {
  const lines = shown('append')
  expect(lines).toEqual(
    expect.arrayContaining([
      expect.stringMatching(/^server +"notes"$/) as string,
      expect.stringMatching(/^tool +"append"$/) as string,
      expect.stringMatching(/^cost +at most 7 EUR/) as string,
      expect.stringMatching(/^arguments +23 bytes; SHA-256$/) as string,
      ` ${'b'.repeat(64)}`,
      ` ${'c'.repeat(64)}`,
    ]),
  )
})

test.each([
  ['a second space', 'append  x', 'append x'],
  ['a letter of another script', 'аppend', 'append'],
  ['a mark that turns the line around', 'append\u202e', 'append'],
  ['what looks like an escape', 'append\\u0020', 'append '],
])('%s in a name shows', (_what, one, other) => {
  expect(shown(one).join('\n')).not.toBe(shown(other).join('\n'))
  expect(shown(one).join('\n')).toMatch(/^[\x20-\x7e\n]*$/)
})
