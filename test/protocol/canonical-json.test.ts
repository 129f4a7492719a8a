// Any JSON value inside a document: still one spelling, still bounded.
import { describe, expect, test } from 'vitest'
import { encode, json } from '../../protocol/codec.js'
import { MAXIMUM_JSON_DEPTH } from '../../protocol/limits.js'
import { read, refusal, write } from '../support/codec-reading.js'

describe('json', () => {
  const Any = json({ maxBytes: 100 })

  test.each([
    '{"a":[1,2.5,-3],"b":{"c":null},"d":"é\\n"}',
    '[]',
    '{}',
    '1e+21',
    '0.1',
    '-0.5',
    'true',
    '"x"',
    '5e-324',
  ])('reads %s and writes it again', document => {
    expect(write(Any, read(Any, document))).toBe(document)
  })

  test.each([
    '{"b":1,"a":2}',
    '{"a":1,"a":1}',
    '{"__proto__":1}',
    '{"a" :1}',
    '[1, 2]',
    '1.0',
    '1e21',
    '1E+21',
    '-0',
    '0.10',
    '9007199254740992',
    '1e400',
    '0.1e1',
    '{"a":1,}',
    '[1,]',
    'nul',
    '{"\\u0061":1}',
    '',
    '{"😀":1,"\ufb33":1}x',
    '{"\ufb33":1,"😀":1}',
  ])('refuses %s', document => {
    expect(refusal(Any, document)).not.toBe('accepted')
  })

  test('accepts its limit of text and refuses one byte over', () => {
    const Small = json({ maxBytes: 7 })
    expect(read(Small, '[1,2,3]')).toEqual([1, 2, 3])
    expect(read(Small, '"abcde"')).toBe('abcde')
    for (const document of ['[1,2,34]', '"abcdef"', '12345678', '{"a":10}']) {
      expect(refusal(Small, document)).not.toBe('accepted')
      expect(() => encode(Small, JSON.parse(document) as never)).toThrow(/at most 7 bytes/)
    }
  })

  test('accepts nesting at the limit and refuses one level more, without harm to the stack', () => {
    const nested = (levels: number): string => '['.repeat(levels) + ']'.repeat(levels)
    const Deep = json({ maxBytes: 100_000 })
    expect(read(Deep, nested(MAXIMUM_JSON_DEPTH))).toBeDefined()
    expect(refusal(Deep, nested(MAXIMUM_JSON_DEPTH + 1))).toMatch(/at most 64 levels/)
    expect(refusal(Deep, '['.repeat(90_000))).toMatch(/at most 64 levels/)
  })
})
