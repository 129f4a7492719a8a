// What a request is refused for by its head alone, as a table; the order of the refusals is a promise too.
import type { IncomingMessage } from 'node:http'
import { describe, expect, test } from 'vitest'
import { ControlToken } from '../../sidecar/control-token.js'
import { type Access, judgeHead } from '../../sidecar/gate.js'
import { MAXIMUM_BODY_BYTES } from '../../sidecar/http-limits.js'
import { CONTROL_TOKEN } from '../support/sidecar.js'

const token = new ControlToken(CONTROL_TOKEN)
const HOST = '127.0.0.1:8787'
const BEARER = ['Authorization', `Bearer ${CONTROL_TOKEN}`] as const
const JSON_TYPE = ['Content-Type', 'application/json'] as const

type Given = readonly (readonly [string, string])[]

function judge(
  access: Access,
  fields: Given,
  {
    authority = null,
    configured = token,
  }: { authority?: string | null; configured?: ControlToken | null } = {},
) {
  const message = { method: 'POST', rawHeaders: fields.flat() } as unknown as IncomingMessage
  return judgeHead(message, access, { authority, token: configured }) ?? 'admitted'
}

describe('the gate of the control routes', () => {
  test.each([
    ['the bearer token', [BEARER]],
    ['its scheme in any case', [['authorization', `bEaReR ${CONTROL_TOKEN}`]]],
    ['the token in another field too', [BEARER, ['x-trace', CONTROL_TOKEN]]],
  ] as const)('admits %s', (_name, fields) => {
    expect(judge('control', [...fields, JSON_TYPE])).toBe('admitted')
  })

  test.each([
    ['no credentials', []],
    ['another token', [['authorization', `Bearer ${CONTROL_TOKEN.slice(1)}`]]],
    ['a longer token', [['authorization', `Bearer ${CONTROL_TOKEN}=`]]],
    ['two spaces', [['authorization', `Bearer  ${CONTROL_TOKEN}`]]],
    ['a tab', [['authorization', `Bearer\t${CONTROL_TOKEN}`]]],
    ['a space behind it', [['authorization', `Bearer ${CONTROL_TOKEN} `]]],
    ['no scheme', [['authorization', CONTROL_TOKEN]]],
    ['another scheme', [['authorization', `Basic ${CONTROL_TOKEN}`]]],
    ['quotes', [['authorization', `Bearer "${CONTROL_TOKEN}"`]]],
    ['two tokens in one field', [['authorization', `Bearer ${CONTROL_TOKEN}, Bearer ${CONTROL_TOKEN}`]]],
    ['the field twice, both right', [BEARER, BEARER]],
    ['the field twice, one empty', [BEARER, ['AUTHORIZATION', '']]],
    ['the token in another field', [['proxy-authorization', `Bearer ${CONTROL_TOKEN}`]]],
    ['an empty token', [['authorization', 'Bearer ']]],
    ['a token of 513 bytes', [['authorization', `Bearer ${'x'.repeat(513)}`]]],
    ['a word of who forwarded it', [['x-forwarded-for', '127.0.0.1']]],
  ] as const)('refuses %s', (_name, fields) => {
    expect(judge('control', [...fields, JSON_TYPE])).toBe('forbidden')
  })

  test('refuses everybody where no token is configured', () => {
    expect(judge('control', [BEARER, JSON_TYPE], { configured: null })).toBe('forbidden')
  })

  test('comes before every look at the body', () => {
    expect(judge('control', [['content-length', String(2 ** 30)]])).toBe('forbidden')
  })
})

describe('a control token on another route', () => {
  test.each([
    ['as credentials', [BEARER]],
    ['in any field', [['cookie', `a=b; c=${CONTROL_TOKEN}; d`]]],
    ['padded', [['x-note', `xx${CONTROL_TOKEN}xx`]]],
    [
      'in the second of two fields',
      [
        ['x-note', 'none'],
        ['x-note', CONTROL_TOKEN],
      ],
    ],
  ] as const)('is refused %s', (_name, fields) => {
    expect(judge('open', [...fields, JSON_TYPE])).toBe('wrongRoute')
    expect(judge('unknown', fields)).toBe('wrongRoute')
  })

  test('is looked for in 65,536 bytes of fields, and one more is refused unread', () => {
    const fields: Given = [['x-fill', 'x'.repeat(65_536 - 'x-fill'.length - 28)], JSON_TYPE]
    expect(judge('open', fields)).toBe('admitted')
    expect(judge('open', [...fields, ['y', '']])).toBe('headersTooLarge')
    expect(judge('control', [...fields, BEARER])).toBe('headersTooLarge')
  })

  test('is nothing where none is configured; other credentials never are', () => {
    expect(judge('open', [BEARER, JSON_TYPE], { configured: null })).toBe('admitted')
    expect(judge('open', [['authorization', 'Bearer other'], JSON_TYPE])).toBe('admitted')
  })
})

describe('on a loopback port', () => {
  const at = { authority: HOST }

  test.each([[HOST], [HOST.toUpperCase()]])('the host %s is expected', host => {
    expect(judge('control', [['Host', host], BEARER, JSON_TYPE], at)).toBe('admitted')
  })

  test.each([
    ['another name', ['localhost:8787']],
    ['another port', ['127.0.0.1:8788']],
    ['no port', ['127.0.0.1']],
    ['none', []],
    ['two', [HOST, HOST]],
    ['an attacker', ['attacker.example']],
  ])('%s is refused before the gate', (_name, hosts) => {
    const fields = hosts.map(host => ['Host', host] as const)
    expect(judge('control', [...fields, BEARER, JSON_TYPE], at)).toBe('host')
    expect(judge('open', [...fields, JSON_TYPE], at)).toBe('host')
    expect(judge('unknown', fields, at)).toBe('host')
  })

  test.each([['https://app.example'], [`http://${HOST}`], ['null'], ['']])(
    'the origin %j is refused',
    origin => {
      expect(judge('control', [['Host', HOST], ['Origin', origin], BEARER, JSON_TYPE], at)).toBe('origin')
    },
  )
})

describe('a body', () => {
  test.each([
    ['application/json', 'admitted'],
    ['Application/JSON; charset=UTF-8', 'admitted'],
    ['application/json;charset="utf-8"', 'admitted'],
    ['application/json; charset=latin1', 'type'],
    ['application/json; boundary=x', 'type'],
    ['application/jsonx', 'type'],
    ['text/plain', 'type'],
    ['application/x-www-form-urlencoded', 'type'],
    ['multipart/form-data', 'type'],
    ['', 'type'],
  ])('of type %j is %s', (type, expected) => {
    expect(judge('open', [['content-type', type]])).toBe(expected)
  })

  test('of no type, of two types or with an encoding is refused', () => {
    expect(judge('open', [])).toBe('type')
    expect(judge('open', [JSON_TYPE, JSON_TYPE])).toBe('type')
    expect(judge('open', [JSON_TYPE, ['content-encoding', 'identity']])).toBe('type')
  })

  test('may wait for one word alone before it is sent', () => {
    expect(judge('open', [JSON_TYPE, ['expect', '100-Continue']])).toBe('admitted')
    expect(judge('open', [JSON_TYPE, ['expect', 'another']])).toBe('malformed')
  })

  test('is refused by the length that it announces, one byte over 1 MiB and 32 KiB', () => {
    expect(MAXIMUM_BODY_BYTES).toBe(1_081_344)
    expect(judge('open', [JSON_TYPE, ['content-length', '1081344']])).toBe('admitted')
    expect(judge('open', [JSON_TYPE, ['content-length', '1081345']])).toBe('tooLarge')
  })
})
