// One execution under one authorization: claim, act, retain, in their order and never twice, on a real ledger.
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { signCallerAuthorization } from '../../protocol/caller-authorization.js'
import { isBrokerError } from '../../protocol/errors.js'
import { HeldClock } from '../support/clock.js'
import {
  authorizationOf,
  codeOf,
  EXECUTOR_KEY,
  ExecutorWorld,
  hexOf,
  KERNEL_KEY,
  termsOf,
} from '../support/executor-world.js'

let world: ExecutorWorld
beforeEach(async () => {
  world = await ExecutorWorld.begin()
})
afterEach(() => world.end())

describe('an authorization', () => {
  test('is carried out once, and its report comes back byte for byte from every later ledger', async () => {
    const authorization = authorizationOf('one')
    const first = await world.execute(authorization)
    expect(first.signed.report).toMatchObject({ output: { operationId: expect.any(String) as string } })
    expect(hexOf(await world.execute(authorization))).toBe(hexOf(first))
    expect(world.effects()).toEqual([
      `${authorization.authorization.invocation.operation_id} ${first.signed.report.claim_id}`,
    ])
    expect(await (await world.open()).counts()).toEqual({ capacity: 4, claims: 1, reports: 1, segments: 1 })
  })

  test('that has expired gives its retained report, and begins nothing', async () => {
    const now = Date.now()
    const short = { expires_at_unix_ms: now + 60_000, not_before_unix_ms: now - 1_000 }
    const [done, late] = [authorizationOf('done', short), authorizationOf('late', short)]
    const first = await world.execute(done)
    const clock = { bootNs: () => process.hrtime.bigint(), unixMs: () => now + 61_000 }
    const afterwards = { bootId: 'another boot', clock }
    expect(hexOf(await world.execute(done, afterwards))).toBe(hexOf(first))
    expect(await codeOf(world.execute(late, afterwards))).toBe('caller_delivery_expired')
    expect(world.effects()).toHaveLength(1)
  })

  test('that was signed anew for the same operation is refused; the first one stands', async () => {
    const original = authorizationOf('one')
    const first = await world.execute(original)
    const { authorization } = original
    const longer = { ...authorization, expires_at_unix_ms: authorization.expires_at_unix_ms + 1 }
    const changed = signCallerAuthorization(longer, KERNEL_KEY)
    expect(await codeOf(world.execute(changed))).toBe('executor_redelivery_changed')
    expect(hexOf(await world.execute(original))).toBe(hexOf(first))
    expect(world.effects()).toHaveLength(1)
  })

  test('is judged by what the executor knows of its own: nothing is claimed where it differs', async () => {
    const authorization = authorizationOf('one')
    const terms = termsOf(authorization)
    const ledger = await world.open()
    const expected = { ...terms.invocation, tool_name: 'read' }
    const judged = [
      ledger.executeOnce(authorization, { ...terms, key: KERNEL_KEY }, world.append),
      ledger.executeOnce(authorization, { ...terms, kernelKey: EXECUTOR_KEY.publicKey }, world.append),
      ledger.executeOnce(authorization, { ...terms, invocation: expected }, world.append),
      ledger.executeOnce({ ...authorization, signature: '00'.repeat(64) }, terms, world.append),
    ].map(codeOf)
    expect(await Promise.all(judged)).toEqual([
      'executor_mismatch',
      'caller_delivery_binding',
      'caller_delivery_binding',
      'caller_delivery_signature',
    ])
    expect(await ledger.counts()).toMatchObject({ claims: 0 })
  })

  test('is claimed on disk, and nothing is locked, when its callback runs', async () => {
    const authorization = authorizationOf('one')
    const seen: unknown[] = []
    const report = await world.execute(authorization, {}, async claim => {
      const other = await world.open({ lockWaitMs: 0 })
      seen.push(await other.counts())
      seen.push(await codeOf(other.executeOnce(authorization, termsOf(authorization), world.append)))
      return world.append(claim)
    })
    expect(seen).toEqual([{ capacity: 4, claims: 1, reports: 0, segments: 1 }, 'executor_outcome_unknown'])
    expect(hexOf(await world.execute(authorization))).toBe(hexOf(report))
    expect(world.effects()).toHaveLength(1)
  })
})

describe('a claim without a report', () => {
  const lost = new Error('lost result of a private note')

  test.each([
    [
      'throws',
      () => {
        throw lost
      },
    ],
    ['rejects', () => Promise.reject(lost)],
    ['observes what no report can hold', () => ({ output: 'x'.repeat(1_048_576), realized_cost: null })],
    ['observes no value at all', () => undefined as never],
  ])('stays unknown for ever when its callback %s', async (_way, callback) => {
    const authorization = authorizationOf('one')
    const refused = await world.execute(authorization, {}, callback).catch((error: unknown) => error)
    expect(refused).toMatchObject({ code: 'executor_outcome_unknown', outcome: 'unknown' })
    expect(isBrokerError(refused) && refused.message).not.toContain('private note')
    for (let asked = 0; asked < 2; asked += 1) {
      expect(await codeOf(world.execute(authorization))).toBe('executor_outcome_unknown')
    }
    expect(world.effects()).toEqual([])
    expect(await (await world.open()).counts()).toMatchObject({ claims: 1, reports: 0 })
  })

  test('takes a place, and none is ever made free', async () => {
    await codeOf(world.execute(authorizationOf('lost'), {}, () => Promise.reject(lost)))
    for (const name of ['a', 'b', 'c']) await world.execute(authorizationOf(name))
    const refused = world.execute(authorizationOf('d'))
    await expect(refused).rejects.toThrow(
      'claim refused: expected room for one more operation, got 4 of 4 claimed; extend the ledger by a segment',
    )
    expect(world.effects()).toHaveLength(3)
  })
})

describe('the time of a claim', () => {
  test.each([
    ['before the interval', -1, 'caller_delivery_expired'],
    ['in its first millisecond', 0, 'none'],
    ['in its last millisecond', 999, 'none'],
    ['at its end', 1_000, 'caller_delivery_expired'],
  ])('%s is %i ms past its begin', async (_moment, pastMs, code) => {
    const clock = new HeldClock()
    const begin = clock.unixMs()
    const interval = { expires_at_unix_ms: begin + 1_000, not_before_unix_ms: begin }
    clock.pass(pastMs)
    const executed = world.execute(authorizationOf('one', interval), { bootId: 'held', clock })
    expect(await codeOf(executed)).toBe(code)
    expect(world.effects()).toHaveLength(code === 'none' ? 1 : 0)
  })

  test('by a clock that was set back begins nothing before it is accepted, and what was retained comes back', async () => {
    const clock = new HeldClock()
    const at = { bootId: 'held', clock }
    const interval = { expires_at_unix_ms: clock.unixMs() + 1_000, not_before_unix_ms: clock.unixMs() }
    const done = authorizationOf('done', interval)
    const first = await world.execute(done, at)
    clock.stepWall(-60_000)
    const late = authorizationOf('late', { ...interval, not_before_unix_ms: clock.unixMs() })
    expect(await codeOf(world.execute(late, at))).toBe('clock_jumped')
    expect(hexOf(await world.execute(done, at))).toBe(hexOf(first))
    const ledger = await world.open(at)
    expect(await codeOf(ledger.acceptClock(KERNEL_KEY))).toBe('executor_mismatch')
    const { from_unix_ms, to_unix_ms } = await ledger.acceptClock(EXECUTOR_KEY)
    expect(to_unix_ms - from_unix_ms).toBe(-60_000)
    expect((await world.execute(late, at)).signed.report.completed_at_unix_ms).toBe(to_unix_ms)
  })

  test('of a callback that outlasts the interval is an end past it, under a start inside', async () => {
    const clock = new HeldClock()
    const begin = clock.unixMs()
    const authorization = authorizationOf('slow', {
      expires_at_unix_ms: begin + 1_000,
      not_before_unix_ms: begin,
    })
    const { signed } = await world.execute(authorization, { bootId: 'held', clock }, claim => {
      clock.pass(5_000)
      return world.append(claim)
    })
    expect(signed.report).toMatchObject({
      completed_at_unix_ms: begin + 5_000,
      execution_started_at_unix_ms: begin,
    })
  })

  test('of an end by a clock that went back is not before its start', async () => {
    const clock = new HeldClock()
    const begin = clock.unixMs()
    const interval = { expires_at_unix_ms: begin + 1_000, not_before_unix_ms: begin }
    const executed = world.execute(authorizationOf('back', interval), { bootId: 'held', clock }, claim => {
      clock.stepWall(-3_600_000)
      return world.append(claim)
    })
    const { report } = (await executed).signed
    expect(report.completed_at_unix_ms).toBe(report.execution_started_at_unix_ms)
  })
})
