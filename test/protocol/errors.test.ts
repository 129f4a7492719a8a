// One error class with a code, an outcome and a sentence; one table that says what each code means.
import { describe, expect, test } from 'vitest'
import { ERROR_CODES, type ErrorCode } from '../../protocol/error-codes.js'
import { BrokerError, isBrokerError } from '../../protocol/errors.js'

const rows = Object.entries(ERROR_CODES).map(([code, row]) => ({ code: code as ErrorCode, ...row }))

describe('BrokerError', () => {
  test('carries code, outcome, operation and cause', () => {
    const cause = new Error('why')
    const error = new BrokerError('conflict', 'claim refused', {
      outcome: 'completed',
      operationId: 'op',
      cause,
    })
    expect(error).toMatchObject({
      code: 'conflict',
      outcome: 'completed',
      operationId: 'op',
      name: 'BrokerError',
    })
    expect(error.message).toBe('claim refused')
    expect(error.cause).toBe(cause)
  })

  test('leaves out what was not given', () => {
    const error = new BrokerError('conflict', 'claim refused')
    expect('operationId' in error).toBe(false)
    expect('cause' in error).toBe(false)
  })

  test.each(rows)('$code says whether it happened, when nobody else did', ({ code, exitCode }) => {
    const expected = exitCode === 75 ? 'unknown' : 'not_started'
    expect(new BrokerError(code, 'x').outcome).toBe(expected)
  })

  test('is told apart from other errors', () => {
    expect(isBrokerError(new BrokerError('usage', 'x'))).toBe(true)
    expect(isBrokerError(Object.assign(new Error('x'), { code: 'usage' }))).toBe(false)
    expect(isBrokerError(undefined)).toBe(false)
  })
})

describe('the table of codes', () => {
  test.each(rows)(
    '$code has a wire form, an exit code and a next step',
    ({ code, peerSees, exitCode, next }) => {
      expect(code).toMatch(/^[a-z](?:[a-z0-9]|_(?!_))*[a-z0-9]$/)
      expect([0, 1, 2, 69, 73, 75]).toContain(exitCode)
      expect(next.length).toBeGreaterThan(4)
      expect(next).not.toMatch(/\.$/)
      if (peerSees !== null) expect(Object.keys(ERROR_CODES)).toContain(peerSees)
    },
  )

  test('tells a peer nothing of faults inside the broker', () => {
    for (const code of ['invariant', 'storage', 'custody'] as const)
      expect(ERROR_CODES[code].peerSees).toBeNull()
  })

  test('shows a peer only codes of the protocol, and the few that replay and a drain add', () => {
    const shown = new Set(rows.map(row => row.peerSees).filter(code => code !== null))
    const known = ['invalid_request', 'authorization_denied', 'authority_unavailable', 'conflict', 'upstream']
    const added = ['response_rejected', 'clock', 'attempt_pending', 'attempt_unknown', 'outcome_unknown']
    const drain = ['broker_stopping', 'kernel_stopping']
    expect([...shown].filter(code => ![...known, ...added, ...drain].includes(code))).toEqual([])
  })
})
