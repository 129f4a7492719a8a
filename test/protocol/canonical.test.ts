// RFC 8785: one spelling for one value; what has none is refused.
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { canonicalBytes } from '../../protocol/canonical.js'
import { sha256Hex, toHex } from '../../protocol/digest.js'
import { encodeFrame } from '../../protocol/frame.js'
import { type JsonValue, parseStrictJson } from '../../protocol/json.js'
import { MAXIMUM_JSON_DEPTH } from '../../protocol/limits.js'
import { FULL_RUN_TIMEOUT_MS, fullCount } from '../support/counts.js'
import { describeVectors, readVectors } from '../support/vectors.js'

const text = (value: JsonValue): string => Buffer.from(canonicalBytes(value)).toString('utf8')
const nested = (levels: number): JsonValue => (levels === 0 ? [] : [nested(levels - 1)])

describe('canonicalBytes', () => {
  test('gives the text of RFC 8785 section 3.2.2', () => {
    const value = {
      numbers: [Number('333333333.33333329'), 1e30, 4.5, 2e-3, 0.000000000000000000000000001],
      string: '€$\u000f\nA\'B"\\\\"/',
      literals: [null, true, false],
    }
    expect(text(value)).toBe(
      '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],' +
        '"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}',
    )
  })

  test('sorts members by UTF-16 code units, as RFC 8785 section 3.2.3 shows', () => {
    const value = { '€': 1, '\r': 2, '\ufb33': 3, '1': 4, '😀': 5, '\u0080': 6, ö: 7 }
    expect(Object.values(JSON.parse(text(value)) as object)).toHaveLength(7)
    expect(text(value)).toBe('{"\\r":2,"1":4,"\u0080":6,"ö":7,"€":1,"😀":5,"\ufb33":3}')
  })

  test.each([
    [0, '0'],
    [-0, '0'],
    [5e-324, '5e-324'],
    [-1.7976931348623157e308, '-1.7976931348623157e+308'],
    [9007199254740991, '9007199254740991'],
    [-9007199254740991, '-9007199254740991'],
    [1e21, '1e+21'],
    [0.1 + 0.2, '0.30000000000000004'],
    [1e-7, '1e-7'],
    [0.000001, '0.000001'],
  ])('writes %d as %s', (number, expected) => {
    expect(text(number)).toBe(expected)
  })

  test('escapes every control character in the one way allowed, and nothing else', () => {
    for (let unit = 0; unit < 0x20; unit++) {
      const short = { 8: '\\b', 9: '\\t', 10: '\\n', 12: '\\f', 13: '\\r' }[unit]
      expect(text(String.fromCharCode(unit))).toBe(
        `"${short ?? `\\u00${unit.toString(16).padStart(2, '0')}`}"`,
      )
    }
    expect(text('\u007f\u0080\u2028/é')).toBe('"\u007f\u0080\u2028/é"')
  })

  test('keeps NFC and NFD twins apart', () => {
    expect(text('\u00e9')).not.toBe(text('e\u0301'))
  })

  test.each<[string, unknown]>([
    ['a lone high surrogate', '\ud800'],
    ['a lone low surrogate', 'a\udc00b'],
    ['a reversed pair', '\udc00\ud800'],
    ['a lone surrogate in a name', { '\ud800': 1 }],
    ['NaN', Number.NaN],
    ['infinity', Number.POSITIVE_INFINITY],
    ['2^53, which another reader may round', 2 ** 53],
    ['-2^53', -(2 ** 53)],
    ['undefined', undefined],
    ['an undefined member', { a: undefined }],
    ['a hole in an array', Array.from<unknown>({ length: 1 })],
    ['a function', () => 1],
    ['a bigint', 1n],
    ['a symbol', Symbol('x')],
    ['a Uint8Array', new Uint8Array(2)],
    ['a Date', new Date(0)],
    ['a Map', new Map()],
    ['a member __proto__', JSON.parse('{"__proto__":1}')],
  ])('refuses %s', (_what, value) => {
    expect(() => canonicalBytes(value as JsonValue)).toThrow(/expected/)
  })

  test('accepts nesting at the limit, refuses one level more and a circle', () => {
    expect(canonicalBytes(nested(MAXIMUM_JSON_DEPTH - 1))).toBeDefined()
    expect(() => canonicalBytes(nested(MAXIMUM_JSON_DEPTH))).toThrow(RangeError)
    const circle: JsonValue[] = []
    circle.push(circle)
    expect(() => canonicalBytes(circle)).toThrow(RangeError)
  })

  test(
    'gives the same bytes after being read again',
    () => {
      const value = fc.jsonValue({ maxDepth: 6 }).filter(isWritable)
      fc.assert(
        fc.property(value, json => {
          const bytes = canonicalBytes(json as JsonValue)
          expect(toHex(canonicalBytes(parseStrictJson(bytes, 'text')))).toBe(toHex(bytes))
          expect(JSON.parse(Buffer.from(bytes).toString())).toEqual(JSON.parse(JSON.stringify(json)))
        }),
        { numRuns: fullCount(300, 5_000) },
      )
    },
    FULL_RUN_TIMEOUT_MS,
  )
})

function isWritable(value: unknown): boolean {
  try {
    canonicalBytes(value as JsonValue)
    return true
  } catch {
    return false
  }
}

interface CanonicalCase {
  readonly id: string
  readonly input_json: string
  readonly canonical_json: string
}

describeVectors('chio canonical vectors', folder => {
  const { cases } = readVectors<{ cases: CanonicalCase[] }>(folder, 'chio/canonical/v1.json')

  test.each(cases.map(vector => [vector.id, vector] as const))('%s', (_id, vector) => {
    expect(text(parseStrictJson(Buffer.from(vector.input_json), 'vector'))).toBe(vector.canonical_json)
  })

  test('order of UTF-16 code units, in octets (the draft leaves out the opening quotes)', () => {
    const extra = readVectors<Record<string, string>>(folder, 'chio/draft-appendix-extra.json')
    const octets = toHex(canonicalBytes({ '\ue000': 1, '\u{10000}': 2 }))
    expect(octets).toBe('7b22f0908080223a322c22ee8080223a317d')
    expect(octets.replace('22f0', 'f0').replace('22ee', 'ee')).toBe(
      extra['utf16_key_ordering_canonical_octets_hex'],
    )
  })

  test('the native frame of the protocol draft', () => {
    const { native_frame: frame } = readVectors<{ native_frame: NativeFrame }>(
      folder,
      'chio/draft-appendix-extra.json',
    )
    const bytes = canonicalBytes(frame.message)
    expect(bytes).toHaveLength(frame.payload_octets)
    expect(toHex(encodeFrame(bytes).subarray(0, 4))).toBe(frame.length_prefix_hex)
    expect(sha256Hex(bytes)).toBe(frame.payload_sha256)
  })
})

interface NativeFrame {
  readonly message: JsonValue
  readonly payload_octets: number
  readonly length_prefix_hex: string
  readonly payload_sha256: string
}
