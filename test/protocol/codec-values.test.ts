// Single values and lists have one spelling; limits are kept at and one over, in reading and in writing.
import { describe, expect, test } from 'vitest'
import {
  array,
  boolean,
  digest,
  encode,
  identifier,
  integer,
  literal,
  nullable,
  oneOf,
  pattern,
  publicKeyHex,
  signatureHex,
  text,
} from '../../protocol/codec.js'
import { MAXIMUM_IDENTIFIER_BYTES, MAXIMUM_INTEGER } from '../../protocol/limits.js'
import { printable, read, refusal, write } from '../support/codec-reading.js'

describe('strings', () => {
  const Any = text({ maxBytes: 100 })

  test.each(
    [
      ['a', '"a"'],
      ['', '""'],
      ['é', '"é"'],
      ['😀', '"😀"'],
      ['"\\', '"\\"\\\\"'],
      ['\b\t\n\f\r', '"\\b\\t\\n\\f\\r"'],
      ['\u0000\u001f', '"\\u0000\\u001f"'],
      ['\u007f/', '"\u007f/"'],
      ['a\nb😀\u0001é', '"a\\nb😀\\u0001é"'],
    ].map(([value = '', written = '']) => [printable(value), value, written] as const),
  )('reads and writes %s as RFC 8785 does', (_name, value, written) => {
    expect(write(Any, value)).toBe(written)
    expect(read(Any, written)).toBe(value)
  })

  test.each(
    [
      '"\\/"',
      '"\\u0041"',
      '"\\u000a"',
      '"\\u000A"',
      '"\\u001F"',
      '"\\u0020"',
      '"\\u007f"',
      '"\\u00e9"',
      '"\\ud83d\\ude00"',
      '"\\ud800"',
      '"\\x41"',
      '"\\u00"',
      '"\\U0001"',
      '"\\',
      '"\\u000',
      '"\n"',
      '"\u0000"',
      "'a'",
      'a',
      '"a',
      'null',
    ].map(spelling => [printable(spelling), spelling] as const),
  )('refuses the spelling %s', (_name, spelling) => {
    expect(refusal(Any, spelling)).not.toBe('accepted')
  })

  test.each([
    ['a bare continuation', [0x80]],
    ['an overlong slash', [0xc0, 0xaf]],
    ['an encoded surrogate', [0xed, 0xa0, 0x80]],
    ['beyond U+10FFFF', [0xf4, 0x90, 0x80, 0x80]],
    ['0xff', [0xff]],
    ['a cut sequence', [0xe2, 0x82]],
    ['a cut sequence after an escape', [0x5c, 0x6e, 0xe2, 0x82]],
  ])('refuses %s as UTF-8', (_what, sequence) => {
    expect(refusal(Any, Uint8Array.from([0x22, ...sequence, 0x22]))).toMatch(/valid UTF-8/)
  })

  test('refuses to write a lone surrogate', () => {
    expect(() => encode(Any, 'a\ud800')).toThrow(/without lone surrogates/)
    expect(() => encode(Any, 1 as unknown as string)).toThrow(TypeError)
  })

  test.each([
    ['ASCII', 'x', 1],
    ['two-byte text', 'é', 2],
    ['escapes', '\n', 1],
    ['four-byte text', '😀', 4],
  ])('counts bytes of %s: accepts at the limit, refuses one over', (_what, unit, size) => {
    const Bounded = text({ maxBytes: size * 5, minBytes: size * 2 })
    for (const times of [2, 5])
      expect(read(Bounded, write(Bounded, unit.repeat(times)))).toBe(unit.repeat(times))
    for (const times of [1, 6]) {
      expect(() => encode(Bounded, unit.repeat(times))).toThrow(RangeError)
      expect(refusal(Bounded, write(Any, unit.repeat(times)))).not.toBe('accepted')
    }
  })

  test('a string that never ends within its limit is given up there', () => {
    expect(refusal(text({ maxBytes: 8 }), `"${'x'.repeat(1_000_000)}`)).toMatch(
      /text of 0\.\.8 bytes at byte 10/,
    )
  })
})

describe('identifier', () => {
  test('accepts its limit and refuses one over', () => {
    const name = 'n'.repeat(MAXIMUM_IDENTIFIER_BYTES)
    expect(read(identifier(), write(identifier(), name))).toBe(name)
    expect(() => encode(identifier(), `${name}n`)).toThrow(RangeError)
    expect(refusal(identifier(), JSON.stringify(`${name}n`))).toMatch(/an identifier of 1\.\.512 bytes/)
  })

  test.each(
    ['', ' a', 'a ', '\ta', 'a\n', '\u00a0a', 'a\u3000', '\u0085a', 'a\u0000b', 'a\u007fb', 'a\u001fb'].map(
      name => [printable(name), name] as const,
    ),
  )('refuses %s', (_name, name) => {
    expect(refusal(identifier(), write(text({ maxBytes: 20 }), name))).toMatch(/an identifier/)
    expect(() => encode(identifier(), name)).toThrow(RangeError)
  })

  test.each(['a b', 'é', 'a:b/c', '\ufeffa', '0'])('accepts %j', name => {
    expect(read(identifier(), JSON.stringify(name))).toBe(name)
  })
})

describe('hex forms', () => {
  test.each([
    ['a digest', digest(), 64],
    ['a public key', publicKeyHex(), 64],
    ['a signature', signatureHex(), 128],
  ])('%s is exactly its digits, in lower case', (_what, codec, digits) => {
    const good = 'a0'.repeat(digits / 2)
    expect(read(codec, JSON.stringify(good))).toBe(good)
    for (const bad of [
      good.slice(1),
      `${good}0`,
      good.toUpperCase(),
      good.replace('0', 'g'),
      `p256:${good}`,
      '',
    ]) {
      expect(refusal(codec, JSON.stringify(bad))).toMatch(/lower-case hex digits/)
      expect(() => encode(codec, bad)).toThrow(RangeError)
    }
  })
})

describe('literal, oneOf and pattern', () => {
  test('accept their own words only', () => {
    expect(read(literal('v1'), '"v1"')).toBe('v1')
    expect(refusal(literal('v1'), '"v2"')).toMatch(/expected "v1"/)
    expect(refusal(literal('v1'), '"v1000"')).toMatch(/expected "v1"/)
    expect(read(oneOf('a', 'b'), '"b"')).toBe('b')
    expect(refusal(oneOf('a', 'b'), '"c"')).toMatch(/expected "a" or "b"/)
    expect(() => encode(oneOf('a', 'b'), 'c' as 'a')).toThrow(RangeError)
    expect(refusal(pattern(/^[a-z]+$/, 5, 'letters'), '"A"')).toMatch(/expected letters/)
  })
})

describe('integer', () => {
  const Any = integer({ min: -MAXIMUM_INTEGER, max: MAXIMUM_INTEGER })

  test.each([0, 1, -1, 42, MAXIMUM_INTEGER, -MAXIMUM_INTEGER])('reads and writes %d', value => {
    expect(read(Any, write(Any, value))).toBe(value)
  })

  test.each([
    '-0',
    '00',
    '01',
    '-01',
    '+1',
    '1.0',
    '1.',
    '1e0',
    '1E2',
    '0x1',
    '9007199254740992',
    '-9007199254740992',
    '100000000000000000000000',
    '',
    '-',
    ' 1',
    '1 ',
    '"1"',
    'true',
    'NaN',
    '1.5',
    '.5',
    '٣',
  ])('refuses the spelling %j', spelling => {
    expect(refusal(Any, spelling)).not.toBe('accepted')
  })

  test('accepts its bounds and refuses one beyond', () => {
    const Small = integer({ min: 2, max: 4 })
    for (const value of [2, 4]) expect(read(Small, String(value))).toBe(value)
    for (const value of [1, 5]) {
      expect(refusal(Small, String(value))).toMatch(/an integer of 2\.\.4/)
      expect(() => encode(Small, value)).toThrow(RangeError)
    }
    for (const value of [2.5, Number.NaN, -0]) expect(() => encode(Any, value)).toThrow(RangeError)
  })
})

describe('boolean, nullable', () => {
  test('have one spelling', () => {
    expect(read(nullable(boolean()), 'null')).toBeNull()
    expect(read(nullable(boolean()), 'true')).toBe(true)
    for (const spelling of ['True', '1', 'nul', 'tru', 'nulll', '"true"', '']) {
      expect(refusal(nullable(boolean()), spelling)).not.toBe('accepted')
    }
    expect(() => encode(boolean(), 1 as unknown as boolean)).toThrow(TypeError)
  })
})

describe('array', () => {
  const List = array(integer({ min: 0, max: 9 }), { min: 1, max: 3 })

  test('accepts its bounds and refuses one beyond', () => {
    expect(read(List, '[1]')).toEqual([1])
    expect(read(List, '[1,2,3]')).toEqual([1, 2, 3])
    expect(refusal(List, '[]')).toMatch(/at least 1 items/)
    expect(refusal(List, '[1,2,3,4]')).toMatch(/at most 3 items/)
    expect(() => encode(List, [])).toThrow(RangeError)
    expect(() => encode(List, [1, 2, 3, 4])).toThrow(RangeError)
    expect(() => encode(List, 'x' as unknown as number[])).toThrow(TypeError)
  })

  test.each(['[1,]', '[,1]', '[1 ,2]', '[ 1]', '[1', '[1,', '1', '{}', '[1;2]'])(
    'refuses the spelling %s',
    spelling => {
      expect(refusal(List, spelling)).not.toBe('accepted')
    },
  )
})
