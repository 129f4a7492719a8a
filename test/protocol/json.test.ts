// Strict JSON: what two readers may understand differently is refused, everything else is read as JSON.parse does.
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { BrokerError } from '../../protocol/errors.js'
import { type JsonValue, parseStrictJson } from '../../protocol/json.js'
import { MAXIMUM_JSON_DEPTH } from '../../protocol/limits.js'
import { FULL_RUN_TIMEOUT_MS, fullCount } from '../support/counts.js'

const parse = (text: string): JsonValue => parseStrictJson(Buffer.from(text, 'utf8'), 'test file')
const nested = (levels: number): string => '['.repeat(levels) + ']'.repeat(levels)

describe('parseStrictJson', () => {
  test(
    'agrees with JSON.parse on every value without duplicate members',
    () => {
      const value = fc.jsonValue({ maxDepth: 6, stringUnit: 'binary' }).filter(isPortable)
      fc.assert(
        fc.property(value, fc.constantFrom(undefined, 1, '\t'), (json, space) => {
          const text = JSON.stringify(json, null, space)
          expect(parse(text)).toEqual(JSON.parse(text))
        }),
        { numRuns: fullCount(300, 5_000) },
      )
    },
    FULL_RUN_TIMEOUT_MS,
  )

  test(
    'refuses whatever JSON.parse refuses, after any single change of a text',
    () => {
      const text = ' {"a": [1, -2.5e3, true, null], "bé": {"c": "\\u00e9\\n\\"x"}, "d": false} '
      fc.assert(
        fc.property(
          fc.nat(text.length - 1),
          fc.constantFrom(...Array.from('{}[]",:\\0-+e.tfnu \u0001\u2028é')),
          (at, put) => {
            const changed = text.slice(0, at) + put + text.slice(at + 1)
            const [strict, lenient] = [
              attempt(() => parse(changed)),
              attempt(() => JSON.parse(changed) as unknown),
            ]
            if ('value' in strict) expect(lenient).toEqual(strict)
            if ('error' in strict) expect(strict.error).toBeInstanceOf(BrokerError)
          },
        ),
        { numRuns: fullCount(2_000, 50_000) },
      )
    },
    FULL_RUN_TIMEOUT_MS,
  )

  test.each([
    ['duplicate members', '{"a":1,"a":2}'],
    ['a duplicate member in escapes', '{"url":1,"u\\u0072l":2}'],
    ['a nested duplicate', '[{"a":{"b":1,"b":1}}]'],
    ['__proto__', '{"__proto__":{"admin":true}}'],
    ['__proto__ in escapes', '{"__pro\\u0074o__":1}'],
    ['a lone high surrogate', '["\\ud800"]'],
    ['a lone low surrogate', '["\\udc00"]'],
    ['a reversed pair', '["\\udc00\\ud800"]'],
    ['a lone surrogate in a name', '{"\\ud800":1}'],
    ['2^53', '9007199254740992'],
    ['2^53 + 1', '9007199254740993'],
    ['-2^53', '-9007199254740992'],
    ['2^53 written as a fraction', '9007199254740992.0'],
    ['2^53 with an exponent', '9.007199254740992e15'],
    ['a 25-digit integer', '1000000000000000000000000'],
    ['a number beyond a double', '1e400'],
    ['a leading zero', '01'],
    ['a plus sign', '+1'],
    ['a bare fraction', '.5'],
    ['NaN', 'NaN'],
    ['a trailing comma', '[1,]'],
    ['a comment', '/**/1'],
    ['single quotes', "'a'"],
    ['a bare control character', '"\u0001"'],
    ['a bare line feed in a string', '"\n"'],
    ['an unknown escape', '"\\x41"'],
    ['a byte order mark', '\ufeff{}'],
    ['a no-break space', '\u00a01'],
    ['two values', '1 2'],
    ['nothing', ''],
    ['only spaces', '  '],
    ['an open string', '"abc'],
    ['a string ending in a backslash', '"abc\\'],
    ['an open object', '{"a":1'],
  ])('refuses %s', (_what, text) => {
    expect(() => parse(text)).toThrow(BrokerError)
  })

  test('refuses invalid UTF-8', () => {
    for (const bytes of [[0xff], [0xc3], [0xed, 0xa0, 0x80], [0xc0, 0x80], [0xf4, 0x90, 0x80, 0x80]]) {
      const text = Uint8Array.from([0x22, ...bytes, 0x22])
      expect(() => parseStrictJson(text, 'test file')).toThrow('test file refused: expected valid UTF-8')
    }
  })

  test('keeps odd names as plain data', () => {
    const value = parse('{"constructor":1,"toString":2,"hasOwnProperty":3}') as Record<string, JsonValue>
    expect(Object.keys(value)).toEqual(['constructor', 'toString', 'hasOwnProperty'])
  })

  test('accepts the largest safe integer, exponents, and negative zero as JSON.parse does', () => {
    expect(parse('9007199254740991')).toBe(Number.MAX_SAFE_INTEGER)
    expect(parse('1e21')).toBe(1e21)
    expect(Object.is(parse('-0'), -0)).toBe(true)
  })

  test('accepts nesting at the limit and refuses one level more', () => {
    expect(parse(nested(MAXIMUM_JSON_DEPTH))).toBeDefined()
    expect(() => parse(nested(MAXIMUM_JSON_DEPTH + 1))).toThrow(/at most 64 levels/)
  })

  test('refuses ten thousand levels without harm to the stack', () => {
    expect(() => parse('['.repeat(10_000))).toThrow(BrokerError)
  })

  test('reads megabytes of spaces, digits and text without harm to the stack', () => {
    const long = 'x'.repeat(3_000_000)
    expect(parse(`"${long}\\n"`)).toBe(`${long}\n`)
    expect(parse(`${' '.repeat(3_000_000)}1`)).toBe(1)
    expect(parse(`0.${'1'.repeat(1_000_000)}`)).toBeCloseTo(0.1111)
  })

  test('names the file and the place, never the content', () => {
    const refused = attempt(() => parse('{"secret-name":"hunter2" "x":1}'))
    const error = (refused as { error: BrokerError }).error
    expect(error.code).toBe('invalid_request')
    expect(error.message).toMatch(/^test file refused: expected .* at character 25$/)
    expect(`${error.message} ${String(error.cause)}`).not.toMatch(/hunter2|secret-name/)
  })
})

type Attempt = { readonly value: unknown } | { readonly error: unknown }
function attempt(act: () => unknown): Attempt {
  try {
    return { value: act() }
  } catch (error) {
    return { error }
  }
}

/** Values that strict JSON accepts: no unsafe integers, no __proto__, no lone surrogates. */
function isPortable(value: unknown): boolean {
  const text = JSON.stringify(value)
  if (text.includes('__proto__') || /\\ud[89a-f]/i.test(text)) return false
  let portable = true
  JSON.parse(text, (_key, part: unknown) => {
    if (
      typeof part === 'number' &&
      Number.isInteger(part) &&
      !Number.isSafeInteger(part) &&
      Math.abs(part) < 1e21
    ) {
      portable = false
    }
    return part
  })
  return portable
}
