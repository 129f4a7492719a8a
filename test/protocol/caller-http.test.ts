// Bodies and replies of the caller routes: read strictly in any spelling, with fixed refusals.
import { describe, expect, test } from 'vitest'
import { encode } from '../../protocol/codec.js'
import {
  CALLER_REFUSALS,
  CONTROL_TOKEN_FORM,
  MAXIMUM_CONTROL_TOKEN_BYTES,
  readHttpJson,
  ReportReply,
  StartBody,
  StartReply,
} from '../../protocol/caller-http.js'
import { MAXIMUM_CALLER_HTTP_BYTES } from '../../protocol/limits.js'
import { call } from '../support/own-tokens.js'
import { callerDocuments, ownAuthorization } from '../support/own-caller.js'

const named = new Map(callerDocuments(call).map(document => [document.name, document]))
const textOf = (name: string): Record<string, unknown> => {
  const { codec, value } = named.get(name) as NonNullable<ReturnType<typeof named.get>>
  return JSON.parse(Buffer.from(encode(codec, value)).toString()) as Record<string, unknown>
}
const read = <T>(codec: Parameters<typeof readHttpJson<T>>[0], value: unknown): T =>
  readHttpJson(codec, Buffer.from(JSON.stringify(value, null, 2)), 'body')

describe('a body', () => {
  test('may come in any spelling of its JSON', () => {
    const value = textOf('start-body')
    const reversed = Object.fromEntries(Object.entries(value).reverse())
    expect(read(StartBody, reversed)).toEqual(named.get('start-body')?.value)
  })

  test.each([
    ['another protocol', { protocol: 'chio.caller-delivery.v2' }],
    ['a surplus member', { surplus: 1 }],
    ['no nonce', { execution_nonce: null }],
    ['an unknown credential', { credentials: { password: 'x' } }],
  ])('with %s is refused', (_fault, changed) => {
    expect(() => read(StartBody, { ...textOf('start-body'), ...changed })).toThrow('refused')
  })
})

describe('a reply', () => {
  test('to a start says its one authorization, or none', () => {
    const started = read(StartReply, textOf('start-committed'))
    expect(started).toMatchObject({ authorization: ownAuthorization, status: 'dispatch_committed' })
    expect(() => read(StartReply, { ...textOf('start-committed'), authorization: null })).toThrow('refused')
    expect(() => read(StartReply, { ...textOf('start-committed'), status: 'reserved' })).toThrow('refused')
  })

  test('to a report never authorizes an execution', () => {
    expect(read(ReportReply, textOf('report-reconciled'))).toMatchObject({ execution_authorized: false })
    expect(() => read(ReportReply, { ...textOf('report-reconciled'), execution_authorized: true })).toThrow(
      'refused',
    )
  })
})

test('a control token has 1 to 512 characters of its alphabet', () => {
  const isToken = (token: string): boolean => CONTROL_TOKEN_FORM.test(token)
  expect(['a', 'aZ0-._~+/==', 'x'.repeat(MAXIMUM_CONTROL_TOKEN_BYTES)].map(isToken)).toEqual([
    true,
    true,
    true,
  ])
  expect(['', '=', 'a b', 'a=b', 'ä', 'a\n', 'x'.repeat(513), `${'x'.repeat(512)}=`].map(isToken)).toEqual(
    Array.from({ length: 8 }, () => false),
  )
})

test('the refusals and the bound are the published ones', () => {
  expect(MAXIMUM_CALLER_HTTP_BYTES).toBe(1_081_344)
  expect(
    Object.entries(CALLER_REFUSALS).map(([name, { body, status }]) => [name, status, body.error]),
  ).toEqual([
    ['forbidden', 403, 'chio_control_forbidden'],
    ['malformed', 400, 'chio_bad_request'],
    ['rejected', 409, 'chio_caller_delivery_rejected'],
    ['tooLarge', 400, 'chio_bad_request'],
    ['unsupported', 400, 'chio_bad_request'],
  ])
})
