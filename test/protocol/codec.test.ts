// One description reads and writes a document: canonical bytes only, each refusal named, limits at and one over.
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  array,
  boolean,
  bytes,
  type Codec,
  decode,
  digest,
  encode,
  identifier,
  integer,
  json,
  literal,
  nullable,
  object,
  oneOf,
  pattern,
  publicKeyHex,
  refine,
  signatureHex,
  tagged,
  text,
  textOrObject,
} from '../../protocol/codec.js'
import { toHex } from '../../protocol/digest.js'
import { BrokerError } from '../../protocol/errors.js'
import { MAXIMUM_IDENTIFIER_BYTES, MAXIMUM_INTEGER, MAXIMUM_JSON_DEPTH } from '../../protocol/limits.js'
import { fullCount } from '../support/counts.js'
import { SampleDocument, sampleDocument } from '../support/sample-document.js'

const utf8 = (value: string): Uint8Array => Buffer.from(value, 'utf8')
/** For the names of tests, which a terminal prints. */
const printable = (value = ''): string => encodeURI(value)
const read = <T>(codec: Codec<T>, value: string | Uint8Array): T =>
  decode(codec, typeof value === 'string' ? utf8(value) : value, 'document')
const write = <T>(codec: Codec<T>, value: T): string => Buffer.from(encode(codec, value)).toString('utf8')

function refusal(codec: Codec<unknown>, value: string | Uint8Array): string {
  try {
    read(codec, value)
    return 'accepted'
  } catch (error) {
    if (!(error instanceof BrokerError)) throw error
    expect(error.code).toBe('invalid_request')
    return error.message
  }
}

describe('every document', () => {
  test('is read back from what was written, and written again to the same bytes', () => {
    fc.assert(
      fc.property(sampleDocument, value => {
        const encoded = encode(SampleDocument, value)
        const decoded = decode(SampleDocument, encoded, 'document')
        expect(decoded).toEqual(value)
        expect(toHex(encode(SampleDocument, decoded))).toBe(toHex(encoded))
      }),
      { numRuns: fullCount(200, 5_000) },
    )
  })

  test('is plain JSON with members in order', () => {
    fc.assert(
      fc.property(sampleDocument, value => {
        const parsed = JSON.parse(write(SampleDocument, value)) as object
        expect(Object.keys(parsed)).toEqual(Object.keys(parsed).sort())
      }),
    )
  })

  test('when changed anywhere, is refused or is another document with these very bytes', () => {
    const change = fc.record({
      at: fc.nat(),
      removed: fc.nat(3),
      put: fc.oneof(
        fc.uint8Array({ maxLength: 3 }),
        fc.constantFrom(...['0', ' ', '"', ',', '\\', '}'].map(utf8)),
      ),
    })
    let accepted = 0
    fc.assert(
      fc.property(sampleDocument, change, (value, { at, removed, put }) => {
        const encoded = encode(SampleDocument, value)
        const from = at % encoded.length
        const changed = Buffer.concat([encoded.subarray(0, from), put, encoded.subarray(from + removed)])
        const message = refusal(SampleDocument, changed)
        if (message !== 'accepted') return
        accepted++
        expect(toHex(encode(SampleDocument, read(SampleDocument, changed)))).toBe(toHex(changed))
      }),
      { numRuns: fullCount(3_000, 100_000) },
    )
    expect(accepted).toBeGreaterThan(0)
  })

  test('when cut short or followed by anything, is refused', () => {
    const encoded = encode(
      SampleDocument,
      fc.sample(sampleDocument, { numRuns: 1, seed: 5 })[0] as SampleDocument,
    )
    for (let cut = 0; cut < encoded.length; cut++) {
      expect(refusal(SampleDocument, encoded.subarray(0, cut))).not.toBe('accepted')
    }
    for (const tail of [' ', '\n', '}', '{}', '\0']) {
      expect(refusal(SampleDocument, Buffer.concat([encoded, utf8(tail)]))).toMatch(/expected the end/)
    }
  })
})

describe('object', () => {
  const Pair = object({ b: integer({ min: 0, max: 9 }), a: integer({ min: 0, max: 9 }) })

  test('sorts its members and reads exactly these', () => {
    expect(write(Pair, { b: 2, a: 1 })).toBe('{"a":1,"b":2}')
    expect(read(Pair, '{"a":1,"b":2}')).toEqual({ a: 1, b: 2 })
  })

  test.each([
    ['a missing member', '{"a":1}', / in b at byte 6/],
    ['an unknown member in front', '{"A":0,"a":1,"b":2}', / in a at byte 1/],
    ['an unknown member between', '{"a":1,"aa":1,"b":2}', / in b at byte 6/],
    ['an unknown member at the end', '{"a":1,"b":2,"c":3}', /no further member/],
    ['members out of order', '{"b":2,"a":1}', / in a at byte 1/],
    ['a doubled member', '{"a":1,"a":1,"b":2}', / in b at byte 6/],
    ['a member doubled at the end', '{"a":1,"b":2,"b":2}', /no further member/],
    ['an escaped member name', '{"\\u0061":1,"b":2}', / in a at byte 1/],
    ['a space after the colon', '{"a": 1,"b":2}', /integer in a at byte 5/],
    ['a space before the name', '{ "a":1,"b":2}', / in a at byte 1/],
    ['a leading comma', '{,"a":1,"b":2}', / in a at byte 1/],
    ['a trailing comma', '{"a":1,"b":2,}', /no further member/],
    ['an array', '[1,2]', /an object/],
    ['nothing', '', /an object/],
  ])('refuses %s, naming the member of its own that was due', (_what, document, message) => {
    expect(refusal(Pair, document)).toMatch(message)
  })

  test('never repeats what stood there', () => {
    expect(refusal(Pair, '{"a":1,"token-hunter2":2}')).not.toMatch(/hunter2/)
    expect(refusal(text({ maxBytes: 3 }), '"hunter2"')).not.toMatch(/hunter2/)
  })

  test('orders names by UTF-16 code units, not by code points', () => {
    const Names = object({ '\ufb33': boolean(), '😀': boolean() })
    expect(write(Names, { '\ufb33': true, '😀': false })).toBe('{"😀":false,"\ufb33":true}')
  })

  test('leaves optional members out when undefined and reads either form', () => {
    const Loose = object({ m: boolean() }, { optional: { a: boolean(), z: boolean() } })
    expect(write(Loose, { m: true })).toBe('{"m":true}')
    expect(write(Loose, { m: true, a: false, z: true })).toBe('{"a":false,"m":true,"z":true}')
    for (const document of ['{"m":true}', '{"a":true,"m":true}', '{"m":true,"z":true}']) {
      expect(write(Loose, read(Loose, document))).toBe(document)
    }
    expect('a' in read(Loose, '{"m":true}')).toBe(false)
    expect(refusal(Loose, '{"a":true}')).toMatch(/ in m/)
    expect(refusal(Loose, '{"m":true,"a":true}')).toMatch(/no further member/)
  })

  test('reads and writes an object without members', () => {
    expect(write(object({}), {})).toBe('{}')
    expect(refusal(object({}), '{"a":1}')).toMatch(/no further member/)
  })

  test('names the path of a nested fault, in reading and in writing', () => {
    const Outer = object({ outer: object({ inner: array(Pair, { max: 2 }) }) })
    expect(refusal(Outer, '{"outer":{"inner":[{"a":1,"b":x}]}}')).toMatch(/ in outer\.inner\.\[\]\.b at byte/)
    expect(() => encode(Outer, { outer: { inner: [{ a: 1, b: 10 }] } })).toThrow(
      '"outer.inner.[].b" expected an integer of 0..9, got 10',
    )
  })

  test('cannot be declared with __proto__ or with one name twice', () => {
    expect(() => object(JSON.parse('{"__proto__":1}') as Record<string, Codec<unknown>>)).toThrow(RangeError)
    expect(() => object({ a: boolean() }, { optional: { a: boolean() } })).toThrow(/"a" once/)
  })
})

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

describe('tagged', () => {
  const Shape = tagged('kind', {
    dot: object({}),
    line: object({ a: integer({ min: 0, max: 9 }), z: bytes({ max: 9 }) }),
  })

  test('finds its variant wherever the telling member stands', () => {
    expect(write(Shape, { kind: 'line', a: 1, z: Uint8Array.of(7) })).toBe('{"a":1,"kind":"line","z":[7]}')
    expect(read(Shape, '{"a":1,"kind":"line","z":[7]}')).toEqual({ kind: 'line', a: 1, z: Uint8Array.of(7) })
    expect(read(Shape, '{"kind":"dot"}')).toEqual({ kind: 'dot' })
  })

  test.each([
    ['an unknown kind', '{"kind":"cube"}', /"kind" to be "dot" or "line"/],
    ['no kind', '{"a":1}', /this member in kind/],
    ['an empty object', '{}', /this member in kind/],
    ['the members of another kind', '{"a":1,"kind":"dot"}', /in kind at byte 1/],
    ['two kinds', '{"kind":"dot","kind":"line"}', /no further member/],
    ['a kind that is no string', '{"kind":1}', /a string in kind/],
    ['no object', '[]', /an object/],
    ['an open object', '{"a":1', /comma or the end of the object in kind/],
  ])('refuses %s', (_what, document, message) => {
    expect(refusal(Shape, document)).toMatch(message)
  })

  test('refuses to write an unknown kind', () => {
    expect(() => encode(Shape, { kind: 'cube' } as unknown as { kind: 'dot' })).toThrow(RangeError)
  })

  test('keeps the conditions of a refined variant', () => {
    const Refined = tagged('kind', {
      pair: refine(object({ x: integer({ min: 0, max: 9 }), y: integer({ min: 0, max: 9 }) }), value => {
        if (value.x > value.y) throw new BrokerError('invalid_request', 'pair refused: expected x <= y')
      }),
    })
    expect(read(Refined, '{"kind":"pair","x":1,"y":2}')).toEqual({ kind: 'pair', x: 1, y: 2 })
    expect(refusal(Refined, '{"kind":"pair","x":3,"y":2}')).toBe('pair refused: expected x <= y')
  })
})

describe('textOrObject', () => {
  const Hold = textOrObject(oneOf('held'), object({ captured: integer({ min: 0, max: 9 }) }))

  test('tells the two forms apart by the first byte', () => {
    for (const document of ['"held"', '{"captured":1}'])
      expect(write(Hold, read(Hold, document))).toBe(document)
    for (const document of ['"lost"', '{"captured":"held"}', 'null', '["held"]']) {
      expect(refusal(Hold, document)).not.toBe('accepted')
    }
  })
})

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

describe('refine', () => {
  test('ties members together in both directions', () => {
    const Even = refine(integer({ min: 0, max: 9 }), value => {
      if (value % 2 === 1) throw new BrokerError('invalid_request', 'number refused: expected an even one')
    })
    expect(read(Even, '4')).toBe(4)
    expect(refusal(Even, '3')).toMatch(/even/)
    expect(() => encode(Even, 3)).toThrow(BrokerError)
  })
})
