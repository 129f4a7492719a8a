// The kernel's receipt: the form of the vectors, what its id and signature bind, and what is refused of it.
import { describe, expect, test } from 'vitest'
import { canonicalBytes } from '../../protocol/canonical.js'
import { decode, encode } from '../../protocol/codec.js'
import { isBrokerError } from '../../protocol/errors.js'
import type { JsonValue } from '../../protocol/json.js'
import {
  KernelReceipt,
  KernelReceiptBody,
  receiptBodyOf,
  receiptIdOfBody,
  signKernelReceipt,
  verifyKernelReceipt,
} from '../../protocol/kernel-receipt.js'
import { admitPublicKey, signingKey } from '../../protocol/keys.js'
import { readReceiptLine, verifyReceiptLine } from '../../protocol/receipt-line.js'
import { judgeKernelReceipt } from '../../protocol/receipt-judgement.js'
import { codeOf } from '../support/descriptors.js'
import { LOG_KEY, receiptBody, receiptLine, receiptsOf, STRANGERS_KEY } from '../support/kernel-receipts.js'
import { describeVectors, readVectors } from '../support/vectors.js'

const bytesOf = (value: JsonValue): Uint8Array => Buffer.from(JSON.stringify(value))
const pinned = LOG_KEY.publicKey
const sentenceOf = (action: () => unknown): string => {
  try {
    action()
    return 'accepted'
  } catch (error) {
    return isBrokerError(error) ? error.message : String(error)
  }
}

interface ReceiptVectors {
  readonly signing_key_seed_hex: string
  readonly cases: readonly {
    readonly id: string
    readonly receipt: { readonly [member: string]: JsonValue }
    readonly signing_input_canonical_json?: string
    readonly expected_without_trusted_signers?: Record<string, unknown>
  }[]
}

describeVectors('receipts of the other implementation', folder => {
  const current = readVectors<ReceiptVectors>(folder, 'chio', 'receipt', 'v1-content-addressed.json')
  const old = readVectors<ReceiptVectors>(folder, 'chio', 'receipt', 'v1-old-form.json')
  const key = signingKey(Buffer.from(current.signing_key_seed_hex, 'hex'))

  test.each(current.cases)('$id verifies, and is what our signer makes of its body', vector => {
    const receipt = readReceiptLine(bytesOf(vector.receipt), 1)
    const body = receiptBodyOf(verifyKernelReceipt(receipt, admitPublicKey(receipt.kernel_key, 'key')))
    const signed = `{"body":${Buffer.from(encode(KernelReceiptBody, body)).toString()},"id":"${receipt.id}"}`
    expect(signed).toBe(vector.signing_input_canonical_json)
    expect(signKernelReceipt(body, key, '')).toEqual(receipt)
  })

  test.each(current.cases)('$id is judged as the bindings judge it without a trusted signer', vector => {
    const receipt = readReceiptLine(bytesOf(vector.receipt), 1)
    expect(judgeKernelReceipt(receipt, [])).toEqual(vector.expected_without_trusted_signers)
    const trusted = [admitPublicKey(receipt.kernel_key, 'key')]
    expect(judgeKernelReceipt(receipt, trusted)).toMatchObject({
      authorized: true,
      ok: true,
      signer_trusted: true,
    })
  })

  test.each(old.cases)('the old form of $id is refused by name', async ({ receipt }) => {
    expect(await codeOf(() => readReceiptLine(bytesOf(receipt), 1))).toBe('receipt_old_form')
    expect(sentenceOf(() => readReceiptLine(bytesOf(receipt), 1))).toContain('old form with a free id')
  })
})

describe('a signed receipt', () => {
  test('is verified by its pinned key, and its id is the digest of its body', () => {
    const receipt = signKernelReceipt(receiptBody(), LOG_KEY, '')
    expect(verifyKernelReceipt(receipt, pinned)).toEqual(receipt)
    expect(receipt.id).toBe(receiptIdOfBody(receiptBody()))
  })

  test('keeps the id that was proposed for it in its metadata', () => {
    const nonceOf = (metadata?: JsonValue) =>
      signKernelReceipt(receiptBody(metadata === undefined ? {} : { metadata }), LOG_KEY, 'rcpt-7').metadata
    expect(nonceOf()).toEqual({ chio_receipt_signing_nonce: 'rcpt-7' })
    expect(nonceOf({ a: 1 })).toEqual({ a: 1, chio_receipt_signing_nonce: 'rcpt-7' })
    expect(nonceOf([1])).toEqual({ chio_receipt_signing_nonce: 'rcpt-7', original_metadata: [1] })
    expect(nonceOf('text')).toEqual({ chio_receipt_signing_nonce: 'rcpt-7', original_metadata: 'text' })
  })

  test('with any member changed, removed or added is refused', () => {
    const receipt = signKernelReceipt(receiptBody(), LOG_KEY, 'rcpt-1')
    const members = Object.keys(receipt) as (keyof KernelReceipt)[]
    for (const member of members) {
      const { [member]: _removed, ...rest } = receipt
      const changed = { ...receipt, [member]: changedValue(receipt[member] as JsonValue) }
      for (const spoiled of [rest, changed]) {
        const line = bytesOf(spoiled)
        expect({ member, code: sentenceOf(() => verifyReceiptLine(line, 1, pinned)) }).not.toEqual({
          member,
          code: 'accepted',
        })
      }
    }
    const surplus = bytesOf({ ...receipt, extra: true })
    expect(sentenceOf(() => verifyReceiptLine(surplus, 1, pinned))).toContain(
      'receipt fields differ from the supported signed schema',
    )
  })

  test('of another kernel is refused, though its signature is good', () => {
    const [receipt] = receiptsOf(1, STRANGERS_KEY) as [KernelReceipt]
    expect(sentenceOf(() => verifyKernelReceipt(receipt, pinned))).toContain('kernel_key refused')
    expect(judgeKernelReceipt(receipt, [pinned])).toMatchObject({
      authorized: false,
      ok: false,
      signature_valid: true,
      signer_trusted: false,
    })
  })

  test('whose action does not hash to its parameter hash is refused, though it is signed so', () => {
    const body = receiptBody({ action: { parameter_hash: '00'.repeat(32), parameters: {} } })
    const receipt = signKernelReceipt(body, LOG_KEY, '')
    expect(sentenceOf(() => verifyKernelReceipt(receipt, pinned))).toContain('parameter_hash refused')
    expect(judgeKernelReceipt(receipt, [pinned])).toMatchObject({ ok: false, parameter_hash_valid: false })
  })

  test('names no key of small order as its signer', () => {
    const receipt = { ...signKernelReceipt(receiptBody(), LOG_KEY, ''), kernel_key: '00'.repeat(32) }
    expect(judgeKernelReceipt(receipt, [])).toMatchObject({ signature_valid: false })
  })
})

function changedValue(value: JsonValue): JsonValue {
  if (typeof value === 'string') return value.startsWith('a') ? `b${value.slice(1)}` : `a${value.slice(1)}`
  if (typeof value === 'number') return value + 1
  return { changed: true }
}

describe('signing', () => {
  test('refuses a body that names another key', async () => {
    expect(await codeOf(() => signKernelReceipt(receiptBody(), STRANGERS_KEY, ''))).toBe('receipt_refused')
  })

  test.each([
    [{ trust_level: 'verified' }, 'trust_level refused'],
    [{ receipt_kind: 'trace_observation' }, 'trust_level refused'],
    [{ decision: undefined }, 'decision refused'],
    [{ metadata: null }, 'metadata refused'],
  ] as const)('refuses %j', (change, expected) => {
    const body = receiptBody(change as Partial<KernelReceiptBody>)
    expect(sentenceOf(() => signKernelReceipt(body, LOG_KEY, ''))).toContain(expected)
  })

  test('leaves the decision out of an observation', () => {
    const { decision: _none, ...body } = receiptBody({
      observation_outcome: 'observed',
      receipt_kind: 'trace_observation',
      trust_level: 'verified',
    })
    expect(judgeKernelReceipt(signKernelReceipt(body, LOG_KEY, ''), [pinned])).toMatchObject({
      authorized: false,
      decision: null,
      ok: true,
      result: null,
    })
  })

  test.each(['cancelled', 'incomplete'] as const)('a receipt that says %s authorizes nothing', verdict => {
    const receipt = signKernelReceipt(receiptBody({ decision: { reason: 'why', verdict } }), LOG_KEY, '')
    expect(judgeKernelReceipt(receipt, [pinned])).toMatchObject({
      authorized: false,
      decision: verdict,
      ok: true,
    })
  })
})

describe('a line', () => {
  const [receipt] = receiptsOf(1) as [KernelReceipt]

  test('may be spelt in any order and spacing', () => {
    const loose = JSON.stringify(Object.fromEntries(Object.entries(receipt).reverse()), null, 1)
    expect(verifyReceiptLine(Buffer.from(` ${loose.replaceAll('\n', ' ')}\r`), 1, pinned)).toEqual(receipt)
  })

  test.each([
    ['a doubled member', '{"id":"a","id":"b"}'],
    ['no JSON', '{'],
    ['a number beyond 2^53', '{"timestamp":9007199254740993}'],
    ['a lone surrogate', '{"id":"\\ud800"}'],
  ])('of %s is refused by its number', (_what, text) => {
    expect(sentenceOf(() => readReceiptLine(Buffer.from(text), 7))).toContain('non-I-JSON receipt at line 7')
  })

  test.each([
    ['an empty evidence list', { evidence: [] }],
    ['null metadata', { metadata: null }],
    ['an explicit null decision', { decision: null }],
    ['another algorithm', { algorithm: 'p256' }],
    ['a projection version', { bbs_projection_version: 1 }],
  ])('with %s is spelt otherwise than it was signed', (_what, change) => {
    const line = Buffer.from(JSON.stringify({ ...receipt, ...change }))
    expect(sentenceOf(() => readReceiptLine(line, 3))).toContain('line 3 refused: receipt fields differ')
  })

  test('with the hint of its algorithm verifies as without', () => {
    const hinted = { ...receipt, algorithm: 'ed25519' } as const
    expect(verifyReceiptLine(Buffer.from(receiptLine(hinted)), 1, pinned)).toEqual(hinted)
  })

  test('is the canonical receipt where the kernel wrote it', () => {
    expect(decode(KernelReceipt, Buffer.from(receiptLine(receipt)), 'line')).toEqual(receipt)
    expect(receiptLine(receipt)).toBe(Buffer.from(canonicalBytes(receipt as unknown as JsonValue)).toString())
  })
})
