// Row verify: how many receipts an auditor verifies a second on one core, from stored bytes to a verdict.
import { createPublicKey, randomBytes, verify as verifyEd25519 } from 'node:crypto'
import { decode, encode } from '../../protocol/codec.js'
import { fromHex } from '../../protocol/digest.js'
import {
  ExecutionReceiptBody,
  SignedExecutionReceipt,
  signReceipt,
  verifyReceipt,
} from '../../protocol/receipt.js'
import { domainMessage } from '../../protocol/signing.js'
import { type PublicKey, type SigningKey, signingKey } from '../../protocol/keys.js'
import { KEY_BYTES, MAXIMUM_CACHED_SIGNATURES } from '../../protocol/limits.js'
import { interleave, millisecondsOf } from '../interleave.js'
import { receiptOfOperation } from '../operation.js'
import { type BenchRow, oursJudged } from '../row.js'

/** Verifications of one sample. */
const RECEIPTS = 500
const RECEIPT_DOMAIN = 'chio.broker-execution-receipt-signature.v2'

/** More than a process remembers as verified, so that every one is verified anew. */
const DISTINCT = 2 * MAXIMUM_CACHED_SIGNATURES

const NOTE =
  `a sample is ${RECEIPTS} of ${DISTINCT} different receipts in turn, one thread. ours: strict canonical decoding of the stored bytes, signer ` +
  'pin, signature. theirs: the bare Ed25519 verification of node:crypto over the finished message, which is the floor'

async function perSecond(verifyOnce: () => void): Promise<number> {
  const took = await millisecondsOf(async () => {
    for (let done = 0; done < RECEIPTS; done++) verifyOnce()
  })
  return (RECEIPTS * 1_000) / took
}

/** The verification that nothing can be faster than: message and key made before. */
function bareVerification(receipt: SignedExecutionReceipt, signer: PublicKey): () => void {
  const message = domainMessage(RECEIPT_DOMAIN, encode(ExecutionReceiptBody, receipt.body))
  const x = Buffer.from(signer, 'hex').toString('base64url')
  const key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' })
  const signature = fromHex(receipt.signature)
  return () => {
    if (!verifyEd25519(null, message, key, signature)) throw new Error('bare verification: expected true')
  }
}

/** One real receipt under as many receipt ids, each signed for itself. */
function differentReceipts({ body }: SignedExecutionReceipt, key: SigningKey): SignedExecutionReceipt[] {
  return Array.from({ length: DISTINCT }, (_, index) =>
    signReceipt({ ...body, receiptId: `${body.receiptId}-${index}` }, key),
  )
}

export const verifyRow: BenchRow = {
  id: 'verify',
  ours: 'receipts verified',
  theirs: 'bare Ed25519 verifications',
  unit: '/s',
  goal: oursJudged('≥ 5,000 /s on one core', ours => ours.p50 >= 5_000),
  rounds: 40,
  async measure(lab, rounds) {
    const installation = await lab.installation()
    const key = signingKey(randomBytes(KEY_BYTES))
    const signer = key.publicKey
    const receipts = differentReceipts(await receiptOfOperation(installation), key)
    const stored = receipts.map(receipt => encode(SignedExecutionReceipt, receipt))
    const bare = bareVerification(receipts[0] as SignedExecutionReceipt, signer)
    let next = 0
    const verifyNext = (): void => {
      next = (next + 1) % DISTINCT
      verifyReceipt(decode(SignedExecutionReceipt, stored[next] as Uint8Array, 'stored receipt'), signer)
    }
    const measured = await interleave(
      rounds,
      () => perSecond(verifyNext),
      () => perSecond(bare),
    )
    return { ...measured, note: NOTE }
  },
}
