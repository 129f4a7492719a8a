// The delivery report of caller delivery: the order of its checks, and every bound at and one over.
import { describe, expect, test } from 'vitest'
import { type CallerPins, verifyHistorical } from '../../protocol/caller-authorization.js'
import {
  canonicalReport,
  type CallerReportBody,
  decodeCallerReport,
  signCallerReport,
  verifyCallerReport,
} from '../../protocol/caller-report.js'
import { sha256Hex, toHex } from '../../protocol/digest.js'
import { checkOf, sortedText } from '../support/caller-checks.js'
import {
  authorizationBody,
  CALLER_BEGIN_UNIX_MS as BEGIN,
  CALLER_END_UNIX_MS as END,
  ownAuthorization,
  ownReport,
  reportBody,
} from '../support/own-caller.js'
import { OWN_KEYS } from '../support/own-request.js'

const [kernel, executor] = [OWN_KEYS.authority, OWN_KEYS.caller]
const body = authorizationBody()
const pins: CallerPins = {
  executor: body.executor,
  invocation: body.invocation,
  kernelKey: kernel.publicKey,
}
const known = verifyHistorical(ownAuthorization, pins)

describe('a delivery report', () => {
  const verified = (changed: Partial<CallerReportBody>, key = executor) =>
    checkOf(() => {
      const report = { ...reportBody(), ...changed }
      const signature = toHex(key.sign(Buffer.from(sortedText(report))))
      verifyCallerReport({ report, signature }, known)
    })

  test('under its authorization is the executor’s word, also when it ended later', () => {
    const report = verifyCallerReport(ownReport, known)
    expect(report.digest).toBe(sha256Hex(canonicalReport(ownReport)))
    expect(ownReport.report.completed_at_unix_ms).toBeGreaterThan(END)
  })

  test.each<[string, Partial<CallerReportBody>, string]>([
    ['an end before its start', { completed_at_unix_ms: BEGIN + 99 }, 'shape'],
    ['a start of 0', { execution_started_at_unix_ms: 0 }, 'shape'],
    ['a cost beyond 2^53-1', { realized_cost: { currency: 'EUR', units: 2 ** 53 } }, 'shape'],
    ['a currency of 65 bytes', { realized_cost: { currency: 'x'.repeat(65), units: 1 } }, 'shape'],
    ['no currency', { realized_cost: { currency: '', units: 1 } }, 'shape'],
    ['another authorization', { authorization_digest: '00'.repeat(32) }, 'binding'],
    ['another epoch', { executor: { ...body.executor, key_epoch: 2 } }, 'binding'],
    ['another executor', { executor: { ...body.executor, executor_id: 'x' } }, 'binding'],
    ['a start before the interval', { execution_started_at_unix_ms: BEGIN - 1 }, 'expired'],
    [
      'a start at the end of the interval',
      { completed_at_unix_ms: END, execution_started_at_unix_ms: END },
      'expired',
    ],
    ['no price', { realized_cost: null }, 'none'],
    ['a free price', { realized_cost: { currency: 'x'.repeat(64), units: 0 } }, 'none'],
    ['the largest price', { realized_cost: { currency: 'EUR', units: 2 ** 53 - 1 } }, 'none'],
    ['no output', { output: null }, 'none'],
    ['an instant', { completed_at_unix_ms: BEGIN, execution_started_at_unix_ms: BEGIN }, 'none'],
    ['the last start', { completed_at_unix_ms: END, execution_started_at_unix_ms: END - 1 }, 'none'],
  ])('with %s is judged by its %#th row', (_fault, changed, check) => {
    expect(verified(changed)).toBe(check)
  })

  test('of another key is refused by its signature', () => {
    expect(verified({}, kernel)).toBe('signature')
    expect(() => signCallerReport(reportBody(), kernel)).toThrow(RangeError)
  })

  test('with several faults is refused by shape, binding, signature, time, in this order', () => {
    const late = { completed_at_unix_ms: END + 1, execution_started_at_unix_ms: END }
    const foreign = { ...late, authorization_digest: '00'.repeat(32) }
    expect([
      verified({ ...foreign, completed_at_unix_ms: 1 }, kernel),
      verified(foreign, kernel),
      verified(late, kernel),
      verified(late),
    ]).toEqual(['shape', 'binding', 'signature', 'expired'])
  })

  test('holds 1,048,576 bytes with its output, and not one more', () => {
    const empty = canonicalReport(signCallerReport({ ...reportBody(), output: '' }, executor))
    const room = 1_048_576 - empty.length
    const full = signCallerReport({ ...reportBody(), output: 'x'.repeat(room) }, executor)
    expect(canonicalReport(full)).toHaveLength(1_048_576)
    expect(checkOf(() => verifyCallerReport(full, known))).toBe('none')
    const over = { ...reportBody(), output: 'x'.repeat(room + 1) }
    expect(checkOf(() => signCallerReport(over, executor))).toBe('shape')
    expect(checkOf(() => decodeCallerReport(new Uint8Array(1_048_577)))).toBe('shape')
  })

  test('never says its output when it is refused', () => {
    const secret = { private_result: 'not-for-diagnostics' }
    const report = { ...reportBody(), authorization_digest: '00'.repeat(32), output: secret }
    const signed = signCallerReport(report, executor)
    expect(() => verifyCallerReport(signed, known)).toThrow(
      expect.objectContaining({ message: expect.not.stringContaining('diagnostics') as string }),
    )
  })
})
