// Owns the signed head of the kernel's store: which commit was the newest, and where its log ended. It is kept beside
// the store, outside the database, so that an older database below it is noticed.
// Must never: be taken for a receipt or a checkpoint, or be longer than what a disk writes whole.
// Source: the rollback anchor of the admission store.
import {
  decode,
  digest,
  encode,
  identifier,
  type Infer,
  integer,
  literal,
  nullable,
  object,
} from './codec.js'
import { BrokerError } from './errors.js'
import type { PublicKey, SigningKey } from './keys.js'
import { MAXIMUM_INTEGER } from './limits.js'
import { signedEnvelope, signEnvelope, verifyEnvelope } from './signing.js'
import { markVerified, type Verified } from './verified.js'

export const KERNEL_HEAD_SCHEMA = 'chio.kernel-head.v1'
/** One sector: a disk writes it whole, or not at all. */
export const KERNEL_HEAD_BYTES = 512

const count = integer({ min: 0, max: MAXIMUM_INTEGER })

export const KernelHeadBody = object({
  /** In which boot it was written: only a power cut loses what the system was handed. */
  bootId: identifier(64),
  commitIndex: count,
  /** Receipts in the log. */
  entries: count,
  /** Leaf hash of the newest receipt; null before the first. */
  lastLeaf: nullable(digest()),
  schema: literal(KERNEL_HEAD_SCHEMA),
  storeId: digest(),
})
export type KernelHeadBody = Infer<typeof KernelHeadBody>

const KernelHead = signedEnvelope(KernelHeadBody)

/** @returns exactly 512 bytes: the signed head, and spaces up to a final newline. */
export function signKernelHead(body: KernelHeadBody, key: SigningKey): Uint8Array {
  const text = encode(KernelHead, signEnvelope(KERNEL_HEAD_SCHEMA, KernelHeadBody, body, key))
  const bytes = Buffer.alloc(KERNEL_HEAD_BYTES, ' ')
  bytes.set(text)
  bytes[KERNEL_HEAD_BYTES - 1] = 0x0a
  return bytes
}

/** @throws BrokerError `store_head_refused` for bytes that the pinned kernel key did not sign. */
export function readKernelHead(bytes: Uint8Array, pinned: PublicKey, path: string): Verified<KernelHeadBody> {
  const head = bytes.length === KERNEL_HEAD_BYTES ? readable(bytes) : undefined
  if (head === undefined) throw headRefusal(path, 'a signed head', 'bytes that are none')
  if (!verifyEnvelope(KERNEL_HEAD_SCHEMA, KernelHeadBody, head, pinned)) {
    throw headRefusal(path, "this kernel key's signature", 'another, or a head that was edited')
  }
  return markVerified(head.body)
}

function readable(bytes: Uint8Array): Infer<typeof KernelHead> | undefined {
  const text = Buffer.from(bytes).toString('latin1').trimEnd()
  try {
    return decode(KernelHead, Buffer.from(text, 'latin1'), 'kernel head')
  } catch {
    return undefined
  }
}

/** What a head that is missing or not this store's says to whoever starts the kernel. */
export function headRefusal(path: string, expected: string, got: string): BrokerError {
  return new BrokerError(
    'store_head_refused',
    `store head ${path} refused: expected ${expected}, got ${got}; put the newest head back, beside the newest store and its log`,
    { outcome: 'not_started' },
  )
}
