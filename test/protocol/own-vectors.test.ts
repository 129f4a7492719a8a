// Our own documents keep their bytes, and no bytes whatever make a reader do anything but accept or refuse.
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { decode, decodeSliced, encode } from '../../protocol/codec.js'
import { sha256Hex, toHex } from '../../protocol/digest.js'
import { isBrokerError } from '../../protocol/errors.js'
import { FULL_RUN_TIMEOUT_MS, fullCount } from '../support/counts.js'
import { kernelDocuments, type OwnDocument, ownDocuments } from '../support/own-documents.js'

const documents = [...ownDocuments(), ...kernelDocuments()].map(
  document => [document.name, document] as const,
)

test('the bytes of every document are those that were frozen', async () => {
  const frozen = ownDocuments().map(({ name, codec, value }) => {
    const bytes = encode(codec, value)
    return { name, sha256: sha256Hex(bytes), canonical: Buffer.from(bytes).toString('utf8') }
  })
  await expect(`${JSON.stringify(frozen, null, 1)}\n`).toMatchFileSnapshot('../vectors/documents.json')
})

describe.each(documents)('%s', (_name, document) => {
  const bytes = encode(document.codec, document.value)

  test('is read back whole, and sliced, to the same bytes', async () => {
    const read = decode(document.codec, bytes, document.name)
    expect(read).toEqual(document.value)
    expect(toHex(encode(document.codec, read))).toBe(toHex(bytes))
    const sliced = await decodeSliced(document.codec, bytes, document.name, () => new Promise(setImmediate))
    expect(sliced).toEqual(read)
  })

  test(
    'when spoiled anywhere, is refused or has exactly these bytes',
    () => {
      fc.assert(
        fc.property(fc.nat(bytes.length - 1), spoiling, (at, { removed, put }) => {
          const spoiled = Buffer.concat([bytes.subarray(0, at), put, bytes.subarray(at + removed)])
          expect(acceptedBytes(document, spoiled)).toBe(toHex(spoiled))
        }),
        { numRuns: fullCount(150, 5_000) },
      )
    },
    FULL_RUN_TIMEOUT_MS,
  )

  test('every other document is refused in its place', () => {
    for (const [name, other] of documents) {
      if (other.codec === document.codec) continue
      const foreign = encode(other.codec, other.value)
      expect({ name, refused: refusesCleanly(document, foreign) }).toEqual({ name, refused: true })
    }
  })

  test('any bytes are refused', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), junk => {
        expect(refusesCleanly(document, junk)).toBe(true)
      }),
    )
  })
})

const piece = fc.oneof(
  fc.uint8Array({ maxLength: 4 }),
  fc.constantFrom(...Array.from('0 "\\,:[]{}-.eE\n').map(character => Buffer.from(character))),
  fc
    .constantFrom('null', '[]', '{}', '1e9', '-0', '"__proto__":1,', '\\u0000')
    .map(text => Buffer.from(text)),
)
const spoiling = fc.record({ removed: fc.nat(12), put: piece })

/** The bytes of the accepted document, or the given ones when they were refused as they must be. */
function acceptedBytes({ codec, name }: OwnDocument, bytes: Uint8Array): string {
  try {
    return toHex(encode(codec, decode(codec, bytes, name)))
  } catch (error) {
    if (isBrokerError(error) && error.code === 'invalid_request') return toHex(bytes)
    throw error
  }
}

function refusesCleanly({ codec, name }: OwnDocument, bytes: Uint8Array): boolean {
  try {
    decode(codec, bytes, name)
    return false
  } catch (error) {
    return isBrokerError(error) && error.code === 'invalid_request'
  }
}
