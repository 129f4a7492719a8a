// Byte strings as decimal arrays: every byte there and back, every other spelling refused, limits at and one over.
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { bytes, decode, encode } from '../../protocol/codec.js'
import { countDecimals, decimalTextBytes } from '../../protocol/decimal-bytes.js'
import { BrokerError } from '../../protocol/errors.js'
import { FULL_RUN_TIMEOUT_MS, fullCount } from '../support/counts.js'

const Any = bytes({ max: 100_000 })
const read = (text: string): Uint8Array => decode(Any, Buffer.from(text, 'latin1'), 'byte string')
const write = (value: Uint8Array): string => Buffer.from(encode(Any, value)).toString('latin1')

test('writes what JSON writes, for every byte and every pair of neighbours', () => {
  const pairs = Array.from({ length: 65_536 }, (_, i) => [i >> 8, i & 255])
    .flat()
    .slice(0, 99_998)
  expect(write(Uint8Array.from(pairs))).toBe(JSON.stringify(pairs))
  for (let byte = 0; byte < 256; byte++) expect(write(Uint8Array.of(byte))).toBe(`[${byte}]`)
})

test(
  'reads what it wrote',
  () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 2_000 }), value => {
        expect(read(write(value))).toEqual(value)
        expect(decimalTextBytes(value)).toBe(value.length === 0 ? 0 : write(value).length - 1)
      }),
      { numRuns: fullCount(200, 5_000) },
    )
  },
  FULL_RUN_TIMEOUT_MS,
)

test('reads and writes nothing as an empty array', () => {
  expect(write(new Uint8Array(0))).toBe('[]')
  expect(read('[]')).toEqual(new Uint8Array(0))
})

test('refuses each number from 256 to 9999 and each with a leading zero', () => {
  for (let number = 256; number < 10_000; number++) expect(() => read(`[${number}]`)).toThrow(BrokerError)
  for (let number = 0; number < 256; number++) {
    expect(read(`[${number}]`)).toEqual(Uint8Array.of(number))
    expect(() => read(`[0${number}]`)).toThrow(BrokerError)
    expect(() => read(`[1,00${number},2]`)).toThrow(BrokerError)
  }
})

test.each([
  '[1,]',
  '[,1]',
  '[,]',
  '[1,,2]',
  '[ 1]',
  '[1 ]',
  '[1, 2]',
  '[-1]',
  '[-0]',
  '[+1]',
  '[1.0]',
  '[1e1]',
  '["1"]',
  '[null]',
  '[1;2]',
  '[1',
  '[1,',
  '[',
  '[[1]]',
  '[1]]',
  '[1]2',
  '{}',
  '"AQ=="',
  'null',
  '[1\n]',
  '[0x1]',
  '[1:2]',
  '[/]',
  '[1000]',
  '[10000000000]',
])('refuses the spelling %j', text => {
  expect(() => read(text)).toThrow(BrokerError)
})

describe('limits', () => {
  const Bounded = bytes({ min: 2, max: 4 })

  test('accepts at either limit and refuses one beyond, reading and writing', () => {
    for (const length of [2, 4]) {
      const value = new Uint8Array(length).fill(200)
      expect(decode(Bounded, encode(Bounded, value), 'byte string')).toEqual(value)
    }
    for (const length of [0, 1, 5, 6, 500]) {
      const value = new Uint8Array(length).fill(200)
      expect(() => decode(Bounded, encode(Any, value), 'byte string')).toThrow(BrokerError)
      expect(() => encode(Bounded, value)).toThrow(`"value" expected 2..4 bytes, got ${length} bytes`)
    }
  })

  test('makes no room beyond its limit for a long text', () => {
    const long = Buffer.from(`[${'1,'.repeat(4_000_000)}1]`)
    const before = process.memoryUsage().arrayBuffers
    expect(() => decode(bytes({ max: 64 }), long, 'byte string')).toThrow(BrokerError)
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(1_000_000)
  })

  test('takes bytes only', () => {
    expect(() => encode(Any, [1, 2] as unknown as Uint8Array)).toThrow(TypeError)
    expect(write(Buffer.from([1, 2]).subarray(1))).toBe('[2]')
  })
})

test('the count of numbers is never less than what is read', () => {
  fc.assert(
    fc.property(
      fc.string({ unit: fc.constantFrom(...Array.from('0123456789,,,x[ ')), maxLength: 60 }),
      text => {
        const source = Buffer.from(text, 'latin1')
        expect(countDecimals(source, 0, source.length)).toBeGreaterThanOrEqual(text.split(',').length)
      },
    ),
  )
  expect(countDecimals(Buffer.from('1,22,333,0'), 0, 10)).toBe(4)
})
