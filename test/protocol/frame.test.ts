// A frame is four bytes of length and exactly that body: refused at four bytes, or complete, nothing between.
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { BrokerError } from '../../protocol/errors.js'
import { encodeFrame, framePrefix, FrameReader } from '../../protocol/frame.js'
import { MAXIMUM_REQUEST_FRAME_BYTES, MAXIMUM_RESPONSE_FRAME_BYTES } from '../../protocol/limits.js'

const prefix = (length: number): Uint8Array => {
  const bytes = new Uint8Array(4)
  new DataView(bytes.buffer).setUint32(0, length)
  return bytes
}

function pushed(reader: FrameReader, chunks: readonly Uint8Array[]): Uint8Array | undefined {
  let body: Uint8Array | undefined
  for (const chunk of chunks) body = reader.push(chunk) ?? body
  return body
}

describe('encodeFrame', () => {
  test('writes the length as four bytes, big endian', () => {
    expect([...encodeFrame(new Uint8Array(0x0102).fill(9))].slice(0, 5)).toEqual([0, 0, 1, 2, 9])
  })

  test('accepts a body at the response limit and refuses one over', () => {
    expect([...framePrefix(MAXIMUM_RESPONSE_FRAME_BYTES)]).toEqual([2, 0, 0, 0])
    expect(() => framePrefix(MAXIMUM_RESPONSE_FRAME_BYTES + 1)).toThrow(RangeError)
  })

  test('refuses an empty body', () => {
    expect(() => encodeFrame(new Uint8Array(0))).toThrow(
      '"bodyBytes" expected an integer of 1..33554432, got 0',
    )
  })
})

describe('FrameReader', () => {
  test('accepts a frame at the limit and refuses one over at four bytes', () => {
    const body = new Uint8Array(MAXIMUM_REQUEST_FRAME_BYTES).fill(1)
    const read = new FrameReader(MAXIMUM_REQUEST_FRAME_BYTES).push(encodeFrame(body)) as Uint8Array
    expect(Buffer.compare(read, body)).toBe(0)
    const reader = new FrameReader(MAXIMUM_REQUEST_FRAME_BYTES)
    expect(() => reader.push(prefix(MAXIMUM_REQUEST_FRAME_BYTES + 1))).toThrow(BrokerError)
  })

  test.each([0, 11, 0xffff_ffff])('refuses the length %i under a limit of ten', length => {
    const reader = new FrameReader(10)
    expect(reader.push(prefix(length).subarray(0, 3))).toBeUndefined()
    expect(() => reader.push(prefix(length).subarray(3))).toThrow(/expected a length of 1\.\.10 bytes/)
  })

  test('announces the length once four bytes are here', () => {
    const reader = new FrameReader(10)
    reader.push(prefix(7).subarray(0, 3))
    expect(reader.announcedBytes).toBeUndefined()
    reader.push(prefix(7).subarray(3))
    expect(reader.announcedBytes).toBe(7)
    expect(reader.received).toBe(4)
  })

  test.each([9, 11])('refuses the prefix %i on a stream bound to ten at four bytes', length => {
    const reader = new FrameReader(100, { exactBytes: 10 })
    expect(() => reader.push(prefix(length))).toThrow(/the bound length of 10 bytes/)
  })

  test('accepts the bound length', () => {
    const body = new Uint8Array(10).fill(3)
    expect(new FrameReader(100, { exactBytes: 10 }).push(encodeFrame(body))).toEqual(body)
  })

  test('refuses a byte after the frame, in the same chunk or a later one', () => {
    const frame = encodeFrame(Uint8Array.of(1, 2))
    expect(() => new FrameReader(10).push(Buffer.concat([frame, Uint8Array.of(3)]))).toThrow(/1 more/)
    const reader = new FrameReader(10)
    reader.push(frame)
    expect(reader.push(new Uint8Array(0))).toBeUndefined()
    expect(() => reader.push(Uint8Array.of(3))).toThrow(BrokerError)
  })

  test('gives no body after a refusal', () => {
    const reader = new FrameReader(10)
    expect(() => reader.push(prefix(0))).toThrow(BrokerError)
    expect(() => reader.push(encodeFrame(Uint8Array.of(1)))).toThrow(BrokerError)
  })

  test('reads the same body whole, in two pieces, and byte by byte', () => {
    const frame = encodeFrame(Uint8Array.from({ length: 50 }, (_, i) => i))
    for (let cut = 0; cut <= frame.length; cut++) {
      expect(pushed(new FrameReader(50), [frame.subarray(0, cut), frame.subarray(cut)])).toEqual(
        frame.subarray(4),
      )
    }
    expect(
      pushed(
        new FrameReader(50),
        Array.from(frame, byte => Uint8Array.of(byte)),
      ),
    ).toEqual(frame.subarray(4))
  })

  test('reads the same body in any pieces', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 1, maxLength: 300 }), fc.array(fc.nat(40)), (body, sizes) => {
        const frame = encodeFrame(body)
        const chunks: Uint8Array[] = []
        let at = 0
        for (const size of sizes) chunks.push(frame.subarray(at, (at = Math.min(frame.length, at + size))))
        chunks.push(frame.subarray(at))
        expect(pushed(new FrameReader(300), chunks)).toEqual(body)
      }),
    )
  })

  test('keeps a copy, so that a chunk may be used again', () => {
    const frame = encodeFrame(Uint8Array.of(1, 2, 3))
    const reader = new FrameReader(10)
    reader.push(frame.subarray(0, 6))
    frame.fill(0, 0, 6)
    expect(reader.push(frame.subarray(6))).toEqual(Uint8Array.of(1, 2, 3))
  })

  test.each([0, -1, 1.5, 2 ** 32, Number.NaN])('refuses the limit %d', limit => {
    expect(() => new FrameReader(limit)).toThrow(RangeError)
    expect(() => new FrameReader(10, { exactBytes: limit })).toThrow(RangeError)
  })
})
