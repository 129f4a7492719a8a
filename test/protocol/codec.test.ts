// One description reads and writes a document: canonical bytes only, every member named, nothing skipped.
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  array,
  boolean,
  bytes,
  type Codec,
  decode,
  encode,
  integer,
  object,
  oneOf,
  refine,
  tagged,
  text,
  textOrObject,
} from '../../protocol/codec.js'
import { toHex } from '../../protocol/digest.js'
import { BrokerError } from '../../protocol/errors.js'
import { read, refusal, utf8, write } from '../support/codec-reading.js'
import { FULL_RUN_TIMEOUT_MS, fullCount } from '../support/counts.js'
import { SampleDocument, sampleDocument } from '../support/sample-document.js'

describe('every document', () => {
  test(
    'is read back from what was written, and written again to the same bytes',
    () => {
      fc.assert(
        fc.property(sampleDocument, value => {
          const encoded = encode(SampleDocument, value)
          const decoded = decode(SampleDocument, encoded, 'document')
          expect(decoded).toEqual(value)
          expect(toHex(encode(SampleDocument, decoded))).toBe(toHex(encoded))
        }),
        { numRuns: fullCount(200, 5_000) },
      )
    },
    FULL_RUN_TIMEOUT_MS,
  )

  test('is plain JSON with members in order', () => {
    fc.assert(
      fc.property(sampleDocument, value => {
        const parsed = JSON.parse(write(SampleDocument, value)) as object
        expect(Object.keys(parsed)).toEqual(Object.keys(parsed).sort())
      }),
    )
  })

  test(
    'when changed anywhere, is refused or is another document with these very bytes',
    () => {
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
    },
    FULL_RUN_TIMEOUT_MS,
  )

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
