// Tools that the configuration names: what their guards ask of a call's arguments, what their schema asks of its output,
// which effect an operation commits to, and whose tokens are believed.
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { callPolicyOf } from '../../../kernel/calls/call-policy.js'
import type { JsonValue } from '../../../protocol/json.js'
import { TestExecutor } from '../../support/caller-executor.js'
import { kernelConfig, makeKernelKeys, makeTestKernel, seed, type TestKernel } from '../../support/kernel.js'
import { callUnder, preflight, reservedCall, startWith, tokenOf } from '../../support/tool-call.js'
import { signingKey } from '../../../protocol/keys.js'

const issuer = signingKey(seed())
const executor = new TestExecutor()
const APPEND = {
  serverId: 'notes',
  toolName: 'append',
  effectClass: 'side_effecting',
  requiredApprovals: 0,
  guards: {
    maximumArgumentBytes: 200,
    secretScan: true,
    argumentSchema: { properties: { note: { type: 'string' } }, required: ['note'], type: 'object' },
  },
  outputSchema: { properties: { written: { const: true } }, required: ['written'], type: 'object' },
} as const
const PAY = { ...APPEND, effectClass: 'monetary', guards: null, outputSchema: null, toolName: 'pay' } as const
const configuredCalls = { issuers: [issuer.publicKey], tools: [APPEND, PAY] }

let kernel: TestKernel
beforeEach(async () => {
  kernel = await makeTestKernel({ callerExecutor: executor.pin, configuredCalls, durableMode: 'monetary' })
})
afterEach(() => kernel.remove())

const call = (params: JsonValue) => preflight(kernel, callUnder(tokenOf(kernel), { params }))

describe('the guards of a configured tool', () => {
  test.each<[string, JsonValue, string, RegExp]>([
    ['too long', { note: 'x'.repeat(200) }, 'argument_size', /at most 200 bytes, got 211$/],
    ['a secret', { note: `ghp_${'a'.repeat(36)}` }, 'argument_secret_scan', /looks like a GitHub token$/],
    ['of another shape', { text: 'x' }, 'argument_schema', /schema of the tool describes/],
  ])('refuse arguments that are %s, and quote none of them', async (_what, params, guard, reason) => {
    const refused = await call(params)
    expect(refused).toMatchObject({ check: 'guard', code: 'guard_denied', verdict: 'deny' })
    expect(refused.reason).toMatch(reason)
    expect(refused.receipt?.decision).toMatchObject({ guard, verdict: 'deny' })
    expect(JSON.stringify(refused)).not.toMatch(/xxxx|ghp_|text/)
  })

  test('pass what keeps to them, each with its evidence', async () => {
    const request = callUnder(tokenOf(kernel), { params: { note: 'x' } })
    const { receipt, verdict } = await reservedCall(kernel, request)
    expect(verdict).toBe('allow')
    expect(receipt?.evidence?.map(({ guard_name }) => guard_name)).toEqual([
      'argument_size',
      'argument_secret_scan',
      'argument_schema',
    ])
  })
})

describe('the output schema of a configured tool', () => {
  const ended = async (output: JsonValue) => {
    const request = callUnder(tokenOf(kernel), { params: { note: 'x' } })
    const { authorization } = await startWith(kernel, request, await reservedCall(kernel, request))
    if (authorization === null) throw new Error('expected an authorization')
    const report = executor.report(authorization, { output })
    return kernel.client.call('call_reconcile', { authorization, report })
  }

  test('lets through what it describes, and withholds anything else', async () => {
    expect(await ended({ written: true })).toMatchObject({ state: 'completed', verdict: 'allow' })
    expect(await ended({ written: false })).toMatchObject({
      check: 'output',
      output: null,
      state: 'denied_after_delivery',
      verdict: 'deny',
    })
  })
})

test('a start warns of an unresolved call with the same arguments, and again while it is unresolved', async () => {
  const [one, other] = [0, 1].map(() => callUnder(tokenOf(kernel), { params: { note: 'x' } })) as [
    ReturnType<typeof callUnder>,
    ReturnType<typeof callUnder>,
  ]
  const unresolved = await reservedCall(kernel, other)
  const started = await startWith(kernel, one, await reservedCall(kernel, one))
  expect(started.warnings).toMatchObject([
    { code: 'operation_shares_arguments', operationIds: [unresolved.operationId] },
  ])
  const { executionNonce } = await preflight(kernel, one)
  expect(executionNonce).toBeNull()
})

test('an operation commits to the effect of its tool, and every receipt names the mode', async () => {
  const grant = { tool_name: 'pay' }
  const paid = await reservedCall(kernel, callUnder(tokenOf(kernel, grant), { tool: 'pay' }))
  const { document } = await kernel.client.call('inspect', { operationId: paid.operationId as string })
  expect(document.binding.effect_class).toBe('monetary')
  expect(paid.receipt?.metadata).toMatchObject({ durable_mode: 'monetary' })
})

test('tokens of a configured issuer are believed, and those of a stranger are not', async () => {
  const believed = tokenOf({ caller: kernel.caller, keys: { issuer } })
  expect(await preflight(kernel, callUnder(believed, { params: { note: 'x' } }))).toMatchObject({
    verdict: 'allow',
  })
  const strange = tokenOf({ caller: kernel.caller, keys: { issuer: signingKey(seed()) } })
  expect(await preflight(kernel, callUnder(strange))).toMatchObject({ check: 'token', verdict: 'deny' })
})

const people = { administrator: signingKey(seed()), broker: signingKey(seed()), caller: signingKey(seed()) }
const parts = { config: kernelConfig('/state', { ...people, configuredCalls }), keys: makeKernelKeys() }

test('more guards than a call has room for are refused with the settings, not at a call', () => {
  const targets = [{ serverId: 'files', toolName: 'read' }]
  const guarded = (count: number) => () =>
    callPolicyOf(
      { ...parts, config: { ...parts.config, toolCalls: null } },
      {
        guards: Array.from({ length: count }, (_, at) => ({ name: `guard_${at}`, judge: () => null })),
        targets,
      },
    )
  expect(guarded(64)).not.toThrow()
  expect(guarded(65)).toThrow(
    /tool read on files refused: expected at most 64 guards over a call of it, got 65/,
  )
})

test('a tool of the configuration is not registered by an embedding too', () => {
  expect(() => callPolicyOf(parts, { targets: [{ serverId: 'notes', toolName: 'append' }] })).toThrow(
    /tool append on notes refused: expected it registered once, got it twice/,
  )
})
