// Owns the head of a ledger outside of its database: how far the history was, signed by the executor, in a file beside it.
// A database that is one line newer was interrupted before its head was written, and the head follows; one that is older
// was put back, and is refused.
// Must never: be written before the commit that it tells, nor need a free block: it is written in place, in two slots by
// turns, so that a torn write leaves the one before it.
// Source: the rule of an older copy; fdatasync(2).
import { closeSync, constants, fdatasyncSync, openSync, readSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'
import {
  decode,
  digest,
  encode,
  type Infer,
  integer,
  literal,
  object,
  signatureHex,
} from '../protocol/codec.js'
import { toHex } from '../protocol/digest.js'
import { isBrokerError } from '../protocol/errors.js'
import { type PublicKey, type SigningKey, verifySignature } from '../protocol/keys.js'
import { MAXIMUM_INTEGER } from '../protocol/limits.js'
import { assertStoreFile } from '../store/file-custody.js'
import { syncPath } from '../store/provision.js'
import { diskFault } from '../store/sql-error.js'
import { genesisOf, type HistoryMark } from './ledger-history.js'
import { notAsWritten } from './ledger-refusals.js'

const SLOT_BYTES = 512
const SLOTS = [0, 1] as const
const HEAD_SCHEMA = 'chio.caller-executor-head.v1'

const HeadBody = object({
  digest: digest(),
  schema: literal(HEAD_SCHEMA),
  sequence: integer({ min: 0, max: MAXIMUM_INTEGER }),
  store_id: digest(),
})
const SignedHead = object({ head: HeadBody, signature: signatureHex() })
type SignedHead = Infer<typeof SignedHead>

export function headPathOf(ledgerPath: string): string {
  return `${ledgerPath}.head`
}

/** Makes the head of a new ledger, which has no history yet. */
export function createHead(ledgerPath: string, storeId: string, key: SigningKey): void {
  const path = headPathOf(ledgerPath)
  try {
    const flags = constants.O_RDWR | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW
    const descriptor = openSync(path, flags, 0o600)
    try {
      writeSync(descriptor, Buffer.alloc(SLOT_BYTES * SLOTS.length, ' '), 0, SLOT_BYTES * SLOTS.length, 0)
      writeSlot(descriptor, signed(storeId, genesisOf(storeId), key))
    } finally {
      closeSync(descriptor)
    }
    syncPath(dirname(path))
  } catch (error) {
    throw diskFault(error, `head ${path}`, 'not_started')
  }
}

/** Signs how far the history is. On disk before it returns. */
export function writeHead(ledgerPath: string, storeId: string, mark: HistoryMark, key: SigningKey): void {
  const path = headPathOf(ledgerPath)
  try {
    const descriptor = openSync(path, constants.O_RDWR | constants.O_NOFOLLOW)
    try {
      writeSlot(descriptor, signed(storeId, mark, key))
    } finally {
      closeSync(descriptor)
    }
  } catch (error) {
    throw diskFault(error, `head ${path}`, 'unknown')
  }
}

/**
 * Compares the history with what was signed of it.
 * @returns whether the head is behind by the one line that an interruption leaves.
 * @throws BrokerError `store_replaced` or `store_missing`.
 */
export function assertHead(
  ledgerPath: string,
  key: PublicKey,
  storeId: string,
  history: readonly HistoryMark[],
): boolean {
  const { digest: told, sequence } = readHead(ledgerPath, key, storeId)
  const marks = [genesisOf(storeId), ...history]
  const known = marks[sequence]
  if (known === undefined)
    throw notAsWritten(`a history of ${sequence} lines or one more`, `${history.length}`)
  if (known.digest !== told) throw notAsWritten('the history that its head signs', 'another')
  if (history.length > sequence + 1) {
    throw notAsWritten(`a head of line ${history.length} or one before it`, `one of line ${sequence}`)
  }
  return history.length > sequence
}

/** The newest that this executor signed for this ledger. @throws BrokerError `store_replaced` where there is none. */
export function readHead(ledgerPath: string, key: PublicKey, storeId: string): SignedHead['head'] {
  const path = headPathOf(ledgerPath)
  assertStoreFile(path)
  const heads = slotsOf(path).flatMap(text => headOf(text, key))
  const own = heads.filter(head => head.store_id === storeId)
  const newest = own.reduce<SignedHead['head'] | undefined>(
    (best, head) => (best === undefined || head.sequence > best.sequence ? head : best),
    undefined,
  )
  return newest ?? refuseHead(heads.length)
}

function refuseHead(signedCount: number): never {
  throw notAsWritten('a head that its executor signed', signedCount > 0 ? "another ledger's" : 'none')
}

function slotsOf(path: string): Uint8Array[] {
  const descriptor = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW)
  try {
    return SLOTS.map(slot => {
      const bytes = Buffer.alloc(SLOT_BYTES, ' ')
      readSync(descriptor, bytes, 0, SLOT_BYTES, slot * SLOT_BYTES)
      return Buffer.from(bytes.toString('latin1').trimEnd(), 'latin1')
    })
  } finally {
    closeSync(descriptor)
  }
}

/** An empty or torn slot holds none. */
function headOf(text: Uint8Array, key: PublicKey): SignedHead['head'][] {
  try {
    const { head, signature } = decode(SignedHead, text, 'ledger head')
    return verifySignature(key, encode(HeadBody, head), signature) ? [head] : []
  } catch (error) {
    if (isBrokerError(error)) return []
    throw error
  }
}

function signed(storeId: string, { digest: told, sequence }: HistoryMark, key: SigningKey): SignedHead {
  const head = { digest: told, schema: HEAD_SCHEMA, sequence, store_id: storeId } as const
  return { head, signature: toHex(key.sign(encode(HeadBody, head))) }
}

function writeSlot(descriptor: number, value: SignedHead): void {
  const slot = value.head.sequence % SLOTS.length
  const bytes = Buffer.alloc(SLOT_BYTES, ' ')
  bytes.set(encode(SignedHead, value))
  writeSync(descriptor, bytes, 0, SLOT_BYTES, slot * SLOT_BYTES)
  fdatasyncSync(descriptor)
}
