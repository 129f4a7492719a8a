import { expect, test } from 'vitest'
import {
  array,
  bytes,
  decode,
  encode,
  identifier,
  integer,
  json,
  nullable,
  object,
  tagged,
  decodeSliced,
  encodeSliced,
} from '../../protocol/codec.js'
import { signedEnvelope, signEnvelope, verifyEnvelope } from '../../protocol/signing.js'
import { signingKey } from '../../protocol/keys.js'
const Doc = object(
  {
    b: integer({ min: 0, max: 9 }),
    a: identifier(),
    z: nullable(bytes({ max: 10_000_000 })),
    op: tagged('kind', { x: object({ a: integer({ min: 0, max: 1 }) }), y: object({}) }),
  },
  { optional: { j: json({ maxBytes: 1000 }), l: array(identifier(), { max: 3 }) } },
)
test('smoke', async () => {
  const v = {
    a: 'hé\u0001',
    b: 3,
    z: new Uint8Array(300_000).map((_, i) => i * 7),
    op: { kind: 'x' as const, a: 1 },
    j: { q: [1, 2.5, 'é\n'] },
  }
  expect(() => encode(Doc, v)).toThrow(RangeError)
  v.a = 'hé'
  const e = encode(Doc, v)
  expect(Buffer.from(e).toString()).toBe(
    JSON.stringify({ a: v.a, b: 3, j: v.j, op: { a: 1, kind: 'x' }, z: [...v.z] }),
  )
  expect(decode(Doc, e, 'doc')).toEqual(v)
  const y = () => new Promise(setImmediate)
  expect(await decodeSliced(Doc, e, 'doc', y)).toEqual(v)
  expect(Buffer.from(await encodeSliced(Doc, v, y)).equals(e)).toBe(true)
  const k = signingKey(new Uint8Array(32).fill(9))
  const env = signEnvelope('a.b.v1', Doc, v, k)
  expect(
    verifyEnvelope(
      'a.b.v1',
      Doc,
      decode(signedEnvelope(Doc), encode(signedEnvelope(Doc), env), 'e'),
      k.publicKey,
    ),
  ).toBe(true)
})
