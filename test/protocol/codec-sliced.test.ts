// Large frames: the same answer as at once, and the event loop turns between slices.
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  array,
  bytes,
  type Codec,
  decode,
  decodeSliced,
  encode,
  encodeSliced,
  identifier,
  json,
  object,
  text,
} from '../../protocol/codec.js'
import { BrokerError } from '../../protocol/errors.js'
import { MAXIMUM_REQUEST_FRAME_BYTES } from '../../protocol/limits.js'
import { FULL_RUN_TIMEOUT_MS, fullCount } from '../support/counts.js'

const Frame = object(
  {
    a: identifier(),
    body: bytes({ max: 20_000_000 }),
    note: text({ maxBytes: 2_000_000 }),
    z: bytes({ max: 1_000_000 }),
  },
  { optional: { json: json({ maxBytes: 10_000_000 }), many: array(bytes({ max: 400_000 }), { max: 9 }) } },
)
type Frame = typeof Frame extends Codec<infer T> ? T : never

const turn = (): Promise<void> => new Promise(resolve => setImmediate(resolve))
const filled = (length: number, seed = 1): Uint8Array => {
  const value = new Uint8Array(length)
  for (let i = 0; i < length; i++) value[i] = i * 31 + seed * 17 + (i >> 7)
  return value
}
const frame = (change: Partial<Frame> = {}): Frame => ({
  a: 'name',
  body: filled(300_000),
  note: 'x',
  z: filled(40_000, 2),
  ...change,
})

async function outcome(act: () => unknown): Promise<unknown> {
  try {
    return await act()
  } catch (error) {
    return error instanceof BrokerError ? `${error.code}: ${error.message}` : error
  }
}

const same = (left: Uint8Array, right: Uint8Array): boolean => Buffer.compare(left, right) === 0

async function expectSameAnswer(encoded: Uint8Array): Promise<void> {
  const atOnce = await outcome(() => decode(Frame, encoded, 'frame'))
  const sliced = await outcome(() => decodeSliced(Frame, encoded, 'frame', turn))
  if (typeof atOnce === 'string' || typeof sliced === 'string') return expect(sliced).toBe(atOnce)
  expect(same(encode(Frame, sliced as Frame), encoded)).toBe(true)
}

describe('decodeSliced', () => {
  test.each<[string, Frame]>([
    ['one large byte string', frame()],
    [
      'several large byte strings',
      frame({ many: [filled(200_000, 3), new Uint8Array(0), filled(90_000, 4)] }),
    ],
    ['brackets, quotes and backslashes in text', frame({ note: '[1,2]"\\[\\"['.repeat(30_000) })],
    ['text that ends in backslashes', frame({ note: '\\'.repeat(200_001) })],
    ['arrays of numbers that are not bytes', frame({ json: Array.from({ length: 90_000 }, (_, i) => i) })],
    ['arrays of bytes that are JSON', frame({ json: Array.from({ length: 90_000 }, (_, i) => i & 255) })],
    [
      'many middling byte strings',
      frame({ many: Array.from({ length: 9 }, (_, i) => filled(2_000 + i * 500, i)) }),
    ],
    ['a small frame', frame({ body: filled(10), z: filled(10) })],
  ])('gives the same answer for %s', async (_what, value) => {
    await expectSameAnswer(encode(Frame, value))
  })

  test.each<[string, (text: string) => string]>([
    ['a leading zero far inside', value => value.replace(/,(\d),(?=[^"]*"note")/, ',0$1,')],
    ['a number of 256', value => replaceAt(value, value.length >> 1, /,\d+,/, ',256,')],
    ['a negative number', value => replaceAt(value, value.length >> 1, /,\d/, ',-1')],
    ['a space', value => replaceAt(value, value.length >> 1, /,/, ', ')],
    ['a fraction', value => replaceAt(value, value.length >> 1, /,\d+,/, ',1.5,')],
    ['a double comma', value => replaceAt(value, value.length >> 1, /,/, ',,')],
    ['a string among the numbers', value => replaceAt(value, value.length >> 1, /,\d+,/, ',"1",')],
    ['a trailing comma', value => value.replace('],"note"', ',],"note"')],
    ['a cut end', value => value.slice(0, value.length >> 1)],
    ['a missing bracket', value => value.replace('],"note"', ',"note"')],
    ['no closing bracket at all', value => value.replaceAll(']', '')],
    ['something behind', value => `${value} `],
  ])('refuses %s with the same sentence', async (_what, spoil) => {
    const value = Buffer.from(encode(Frame, frame())).toString('latin1')
    const spoiled = spoil(value)
    expect(spoiled).not.toBe(value)
    await expectSameAnswer(Buffer.from(spoiled, 'latin1'))
  })

  test('refuses too many bytes with the same sentence', async () => {
    const Small = object({ body: bytes({ max: 100_000 }) })
    const encoded = encode(object({ body: bytes({ max: 300_000 }) }), { body: filled(100_001) })
    const sliced = await outcome(() => decodeSliced(Small, encoded, 'frame', turn))
    expect(sliced).toMatch(/100000/)
  })

  test(
    'gives the same answer for a changed byte anywhere',
    async () => {
      const encoded = encode(Frame, frame({ body: filled(60_000), z: filled(20_000) }))
      await fc.assert(
        fc.asyncProperty(
          fc.nat(encoded.length - 1),
          fc.constantFrom(...Array.from('0,9[]"\\ {}:-.')),
          async (at, put) => {
            const changed = Uint8Array.from(encoded)
            changed[at] = put.charCodeAt(0)
            await expectSameAnswer(changed)
          },
        ),
        { numRuns: fullCount(60, 1_000) },
      )
    },
    FULL_RUN_TIMEOUT_MS,
  )

  test('lets the event loop turn for a frame at the limit', async () => {
    const body = filled(Math.floor(MAXIMUM_REQUEST_FRAME_BYTES / 3.6))
    const encoded = encode(Frame, frame({ body }))
    let turns = 0
    const value = await decodeSliced(Frame, encoded, 'frame', () => {
      turns++
      return turn()
    })
    expect(same(value.body, body)).toBe(true)
    // One turn at least for each quarter of a mebibyte of text: about a millisecond of work.
    expect(turns).toBeGreaterThan(encoded.length / 262_144)
  })

  test.each<[string, string]>([
    ['opening brackets', '['],
    ['open arrays of one number', '[1'],
    ['open strings of brackets', '["['],
    ['nested empty arrays', '[]'],
    ['quotes', '"'],
    ['backslashes in a string', '\\'],
    ['numbers without an end', '1,'],
  ])('refuses eight mebibytes of %s without growing slow', async (_what, unit) => {
    const head = '{"a":"name","body":['
    const hostile = Buffer.from(head + unit.repeat((MAXIMUM_REQUEST_FRAME_BYTES - head.length) / unit.length))
    const before = process.cpuUsage()
    expect(await outcome(() => decodeSliced(Frame, hostile, 'frame', turn))).toMatch(/^invalid_request/)
    // Linear work takes tens of milliseconds of processor time, quadratic work minutes.
    expect(process.cpuUsage(before).user / 1e6).toBeLessThan(10)
  })
})

describe('encodeSliced', () => {
  test.each<[string, Frame]>([
    ['one large byte string', frame()],
    [
      'several, one after the other',
      frame({ many: [filled(70_000), filled(16_384), filled(16_383), filled(65_537)] }),
    ],
    ['none', frame({ body: filled(3), z: filled(2) })],
    ['only zeros', frame({ body: new Uint8Array(200_000) })],
    ['only 255', frame({ body: new Uint8Array(200_000).fill(255) })],
  ])('writes the same bytes for %s', async (_what, value) => {
    expect(same(await encodeSliced(Frame, value, turn), encode(Frame, value))).toBe(true)
  })

  test('writes a byte string that is the whole document', async () => {
    const Bare = bytes({ max: 100_000 })
    for (const fill of [0, 9, 10, 99, 100, 255]) {
      const value = new Uint8Array(70_000).fill(fill)
      const encoded = await encodeSliced(Bare, value, turn)
      expect(same(encoded, encode(Bare, value))).toBe(true)
      expect(Buffer.from(encoded).toString('latin1').slice(-4)).toBe(
        `,${fill}]`.slice(-4).padStart(4, String(fill)),
      )
    }
  })

  test('lets the event loop turn', async () => {
    let turns = 0
    await encodeSliced(Frame, frame({ body: filled(2_000_000) }), () => {
      turns++
      return turn()
    })
    expect(turns).toBeGreaterThan(2_000_000 / 65_536)
  })

  test('refuses what encode refuses', async () => {
    await expect(encodeSliced(Frame, frame({ a: '' }), turn)).rejects.toThrow(RangeError)
  })
})

function replaceAt(value: string, from: number, what: RegExp, by: string): string {
  return value.slice(0, from) + value.slice(from).replace(what, by)
}
