// Guards over a delivered output: what each refuses, that none repeats what it saw, and how a refusal ends an operation.
import { afterEach, describe, expect, test } from 'vitest'
import { readJsonSchema, schemaFault } from '../../../kernel/output/json-schema.js'
import {
  configuredGuards,
  judgeOutput,
  type OutputGuard,
  type OutputGuardSettings,
} from '../../../kernel/output/output-guards.js'
import { secretFormIn } from '../../../kernel/output/secret-forms.js'
import type { JsonValue } from '../../../protocol/json.js'
import { receiptOf, responseOf, started } from '../../support/brokered-operation.js'
import { codeOf } from '../../support/descriptors.js'
import { issueGrant, makeTestKernel, type TestKernel } from '../../support/kernel.js'
import { ScriptedRecords } from '../../support/scripted-records.js'

const NONE: OutputGuardSettings = { jsonSchema: null, maximumBodyBytes: null, secretScan: false }
const delivered = (body: string, header = 'text') => ({
  body: Buffer.from(body),
  headers: [{ name: 'x-note', value: Buffer.from(header) }],
  status: 200,
})
const judge = (settings: Partial<OutputGuardSettings>, body: string, header?: string) =>
  judgeOutput(configuredGuards({ ...NONE, ...settings }), delivered(body, header))

/** Nothing in the tree may look like a secret, so these are put together here. */
const looksLike = {
  'a private key': ['-----BEGIN EC ', 'PRIVATE KEY-----'],
  'an AWS access key': ['AKIA', 'ABCDEFGHIJKLMNOP'],
  'a GitHub token': ['ghp_', 'a'.repeat(36)],
  'a Slack token': ['xoxb-', '1'.repeat(20)],
  'a Google key': ['AIza', 'b'.repeat(35)],
  'an npm token': ['npm_', 'c'.repeat(36)],
  'a signed web token': ['eyJ', `${'d'.repeat(20)}.eyJ${'e'.repeat(20)}`],
}

describe('the chain', () => {
  test('passes what every guard passes, with the evidence of each, the cheapest first', () => {
    const settings = { jsonSchema: { type: 'object' }, maximumBodyBytes: 8, secretScan: true }
    expect(judge(settings, '{"a":1}')).toEqual({
      evidence: ['size', 'secret_scan', 'json_schema'].map(guard_name => ({ guard_name, verdict: true })),
      refusal: null,
    })
    expect(judge({}, 'anything')).toEqual({ evidence: [], refusal: null })
    expect(configuredGuards(null)).toEqual([])
  })

  test('ends at the first guard that refuses', () => {
    const { evidence, refusal } = judge({ jsonSchema: { type: 'object' }, maximumBodyBytes: 3 }, '1234')
    expect(refusal).toEqual({ guard: 'size', reason: 'expected a body of at most 3 bytes, got 4' })
    expect(evidence).toHaveLength(1)
    expect(judge({ maximumBodyBytes: 4 }, '1234').refusal).toBeNull()
  })

  test('takes a guard that fails for a refusal, and repeats nothing that it threw', () => {
    const failing: OutputGuard = {
      name: 'own',
      judge({ body }) {
        throw new Error(`saw ${Buffer.from(body).toString()}`)
      },
    }
    expect(judgeOutput([failing], delivered('private words')).refusal).toEqual({
      guard: 'own',
      reason: 'guard "own" error (fail-closed): fault',
    })
    expect(judge({ jsonSchema: {} }, 'no json').refusal?.reason).toBe(
      'guard "json_schema" error (fail-closed): invalid_request',
    )
  })
})

describe('the secret scan', () => {
  test.each(Object.entries(looksLike))(
    'finds %s in a body and in a header, and names only its form',
    (form, parts) => {
      const secret = parts.join('')
      expect(secretFormIn(Buffer.from(`x "${secret}" y`))).toBe(form)
      for (const judgement of [
        judge({ secretScan: true }, `{"v":"${secret}"}`),
        judge({ secretScan: true }, '', secret),
      ]) {
        expect(judgement.refusal?.reason).toBe(
          `expected nothing in the form of a secret, got what looks like ${form}`,
        )
        expect(JSON.stringify(judgement)).not.toContain(secret)
      }
    },
  )

  test('finds nothing in words, digests and public keys', () => {
    const plain = `-----BEGIN PUBLIC KEY----- ${'a'.repeat(64)} AKIA ghp_short eyJ. risk_live_in peace`
    expect(secretFormIn(Buffer.from(plain))).toBeNull()
  })

  test('takes no time that a provider could choose', () => {
    const hostile = Buffer.from('-eyJ'.repeat(524_288))
    const began = process.hrtime.bigint()
    expect(secretFormIn(hostile)).toBeNull()
    expect(Number(process.hrtime.bigint() - began) / 1e6).toBeLessThan(5_000)
  })
})

describe('the JSON schema', () => {
  const faultOf = (schema: JsonValue, value: JsonValue) => schemaFault(readJsonSchema(schema), value)

  test.each<[JsonValue, JsonValue, string | null]>([
    [{}, null, null],
    [{ type: 'integer' }, 1, null],
    [{ type: 'integer' }, 1.5, 'value: type'],
    [{ type: ['string', 'null'] }, null, null],
    [{ type: 'object' }, [], 'value: type'],
    [{ type: 'array' }, [], null],
    [{ const: { a: [1] } }, { a: [1] }, null],
    [{ enum: ['a', 2] }, 3, 'value: enum'],
    [{ minimum: 1, maximum: 2 }, 2, null],
    [{ minimum: 1, maximum: 2 }, 3, 'value: maximum'],
    [{ minLength: 2 }, '😀', 'value: minLength'],
    [{ maxLength: 1 }, '😀', null],
    [{ maxItems: 1 }, [1, 2], 'value: maxItems'],
    [{ maxItems: 1 }, 'not a list', null],
    [{ items: { type: 'number' } }, [1, 'x'], 'value[1]: type'],
    [{ required: ['id'] }, {}, 'value.id: required'],
    [{ properties: { id: { type: 'integer' } } }, { id: 'x', more: 1 }, 'value.id: type'],
    [{ properties: { id: {} }, additionalProperties: false }, { more: 1 }, 'value: additionalProperties'],
    [{ properties: { toString: { type: 'string' } } }, {}, null],
  ])('%j of %j: %s', (schema, value, fault) => {
    expect(faultOf(schema, value)).toBe(fault)
  })

  test.each<JsonValue>([
    { pattern: 'a' },
    { $ref: '#' },
    { type: 'text' },
    { type: [] },
    { enum: [] },
    { maximum: '1' },
    { additionalProperties: {} },
    { items: [] },
    { properties: { a: { format: 'date' } } },
    { toString: 1 },
    true,
  ])('%j is no schema of the subset', async schema => {
    expect(await codeOf(() => readJsonSchema(schema))).toBe('invalid_configuration')
  })

  test('that is too deep is refused', async () => {
    const nested = (depth: number): JsonValue => (depth === 0 ? {} : { items: nested(depth - 1) })
    expect(() => readJsonSchema(nested(16))).not.toThrow()
    expect(await codeOf(() => readJsonSchema(nested(17)))).toBe('invalid_configuration')
  })
})

describe('an operation whose output is judged', () => {
  let kernel: TestKernel | undefined
  afterEach(() => kernel?.remove())

  async function guarded(settings: Partial<OutputGuardSettings>) {
    const records = new ScriptedRecords()
    const made = await makeTestKernel({ outputGuards: { ...NONE, ...settings }, records })
    kernel = made
    const grant = await issueGrant(made)
    const operation = await started(made, grant)
    const record = receiptOf(made, operation)
    const { operationId } = operation
    return { grant, made, operationId, record, records }
  }

  test('ends as denied after delivery where a guard refuses: signed, with its evidence, and the hold stays spent', async () => {
    const { grant, made, operationId, record, records } = await guarded({ maximumBodyBytes: 4 })
    records.outputs = [responseOf(record)]
    const ended = await made.client.call('finalize', { operationId, record })
    expect(ended).toMatchObject({
      lastError: 'output guard size: expected a body of at most 4 bytes, got 8',
      receipt: {
        decision: { guard: 'size', verdict: 'deny' },
        evidence: [{ guard_name: 'size', verdict: false }],
        metadata: { admission: { projected_state: 'denied_after_delivery' } },
      },
      state: 'denied_after_delivery',
    })
    expect(await made.client.call('finalize', { operationId, record })).toEqual(ended)
    expect(await made.client.call('show_grant', { grantId: grant.grantId })).toMatchObject({
      executions: 1,
      held: 0,
    })
  })

  test('completes with the evidence of every guard that passed it', async () => {
    const { made, operationId, record, records } = await guarded({
      jsonSchema: { type: 'object', required: ['id'] },
      secretScan: true,
    })
    records.outputs = [responseOf(record)]
    const { receipt, state } = await made.client.call('finalize', { operationId, record })
    expect(state).toBe('completed')
    expect(receipt.evidence).toEqual(
      ['secret_scan', 'json_schema'].map(guard_name => ({ guard_name, verdict: true })),
    )
  })

  test.each(['unreachable', 'none'] as const)(
    'waits where the output is %s, and ends by nothing else',
    async said => {
      const { made, operationId, record, records } = await guarded({ secretScan: true })
      records.outputs = [said]
      const asked = made.client.call('finalize', { operationId, record })
      expect(await codeOf(() => asked)).toBe('output_unavailable')
      expect((await made.client.call('inspect', { operationId })).state).toBe('dispatch_committed')
      records.outputs = [responseOf(record)]
      expect((await made.client.call('finalize', { operationId, record })).state).toBe('completed')
    },
  )

  test('is not judged by an output that the receipt does not bind', async () => {
    const { made, operationId, record, records } = await guarded({ secretScan: true })
    records.outputs = [{ ...responseOf(record), body: Buffer.from('{"id":8}') }]
    const asked = made.client.call('finalize', { operationId, record })
    expect(await codeOf(() => asked)).toBe('authorization_denied')
    expect((await made.client.call('inspect', { operationId })).state).toBe('dispatch_committed')
  })

  test('is judged by the guards of an embedding after those of the configuration', async () => {
    const own: OutputGuard = { name: 'own', judge: ({ status }) => (status === 201 ? null : 'expected 201') }
    const guards = [...configuredGuards({ ...NONE, maximumBodyBytes: 8 }), own]
    expect(
      judgeOutput(guards, { ...delivered('12345678'), status: 201 }).evidence.map(one => one.guard_name),
    ).toEqual(['size', 'own'])
    expect(judgeOutput(guards, delivered('1')).refusal).toEqual({ guard: 'own', reason: 'expected 201' })
  })
})
