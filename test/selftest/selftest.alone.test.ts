// The shipped cases, as an operator runs them: one line a case, one document with --json, and an exit code that a
// script can use.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { CaseFailure, expectAtMost, expectEqual } from '../../selftest/case-result.js'
import { BROKER_CASES } from '../../selftest/broker.js'
import { chio, documentOf } from '../support/chio.js'
import { SKIP_REASONS } from '../support/skips.js'
import { SingleUser } from '../support/single-user.js'
import { testWhen } from '../support/when.js'

const ENDINGS: Record<string, string> = {
  'waits-without-blocking-control-and-executes-once': 'executed',
  'refuses-unauthorized-second-and-substituted': 'refused_binding',
  'expiry-end-of-stream-and-trickle-free-the-slot': 'client_fault',
  'lifetime-follows-capability-and-nonce-expiry': 'declined_preparation',
}

interface Case {
  readonly name: string
  readonly ok: boolean
  readonly ending: string
  readonly ms: number
  readonly proved: string
}

describe('chio selftest broker', () => {
  test('proves all four cases and says each in one document', async () => {
    const ended = await chio(['selftest', 'broker', '--json'])
    expect(ended).toMatchObject({ status: 0, stderr: '' })
    const document = documentOf(ended.stdout)
    expect(Object.keys(document).sort()).toEqual(['cases', 'schema'])
    expect(document.schema).toBe('chio.selftest.v1')
    const cases = document['cases'] as Case[]
    expect(Object.fromEntries(cases.map(({ name, ending }) => [name, ending]))).toEqual(ENDINGS)
    for (const one of cases) {
      expect(Object.keys(one).sort()).toEqual(['ending', 'ms', 'name', 'ok', 'proved'])
      expect([one.name, one.ok]).toEqual([one.name, true])
      expect(one.ms).toBeGreaterThan(0)
      expect(one.proved.length).toBeGreaterThan(20)
    }
    expect(BROKER_CASES).toEqual(cases.map(({ name }) => name))
  })

  test('runs one case alone, also by its other name, and says it in one line', async () => {
    const name = 'waits-without-blocking-control-and-executes-once'
    const ended = await chio(['security', 'selftest', 'broker', '--case', name])
    expect(ended).toMatchObject({ status: 0, stderr: '' })
    expect(ended.stdout.trim().split('\n')).toHaveLength(1)
    expect(ended.stdout).toMatch(new RegExp(`^ok    ${name}: .* \\([\\d.]+ ms\\)\\n$`))
  })
})

describe('chio selftest broker of an unprivileged user', () => {
  let user: SingleUser | undefined
  beforeAll(() => {
    if (process.geteuid?.() === 0) user = new SingleUser()
  })
  afterAll(() => user?.remove())

  testWhen(process.geteuid?.() === 0, SKIP_REASONS.needsRoot, 'proves the same', async () => {
    const name = 'refuses-unauthorized-second-and-substituted'
    const command = user?.start(['selftest', 'broker', '--json', '--case', name])
    const ended = await command?.ended
    expect(ended).toMatchObject({ status: 0, stderr: '' })
    expect((documentOf(ended?.stdout ?? '')['cases'] as Case[]).map(({ ok }) => ok)).toEqual([true])
  })
})

describe('a case', () => {
  test('fails with what was expected and what was found', () => {
    expect(() => expectEqual('slot', 'free', 'free')).not.toThrow()
    expect(() => expectEqual('slot', { a: 1 }, { a: 1 })).not.toThrow()
    expect(() => expectEqual('slot', 'free', 'held')).toThrow(CaseFailure)
    expect(() => expectEqual('slot', 'free', 'held')).toThrow('slot: expected "free", got "held"')
    expect(() => expectAtMost('answer in ms', 100, 100)).not.toThrow()
    expect(() => expectAtMost('answer in ms', 100, 100.1)).toThrow(
      'answer in ms: expected at most 100, got 100.1',
    )
  })
})
