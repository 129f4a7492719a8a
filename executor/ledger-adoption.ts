// Owns the one way in which a ledger's disk may change its number: whoever holds the executor's key signs that change, and
// the document is kept in the ledger beside the new pin.
// Must never: accept another file, or a ledger whose head another executor signed.
// Source: the pin of a store; device numbers of disks may change over a restart (sd(4)).
import { digest, encode, identifier, literal, object, signatureHex } from '../protocol/codec.js'
import { toHex } from '../protocol/digest.js'
import { admitPublicKey, type SigningKey } from '../protocol/keys.js'
import { type AdoptionRequest, adoptStore } from '../store/adopt.js'
import { readHead } from './ledger-head.js'
import { LEDGER_SCHEMA } from './ledger-schema.js'
import type { LedgerPlace } from './ledger-visit.js'

const AdoptionBody = object({
  found_device: identifier(),
  inode: identifier(),
  pinned_device: identifier(),
  schema: literal('chio.caller-executor-adoption.v1'),
  store_id: digest(),
})
const SignedAdoption = object({ adoption: AdoptionBody, signature: signatureHex() })

/**
 * Pins the ledger to the device where it is now. Nothing else of it is looked at: a visit does that.
 * @throws BrokerError `store_replaced` for another inode or a head that this executor did not sign; `conflict` where the
 * device is the pinned one; `another_instance`, `store_missing`, `storage`.
 */
export function adoptLedger({ executor, lockWaitMs, path, time }: LedgerPlace, key: SigningKey) {
  const publicKey = admitPublicKey(executor.public_key, 'executor public_key')
  return adoptStore(path, LEDGER_SCHEMA, {
    authorize(request) {
      readHead(path, publicKey, request.storeId)
      return signedAdoption(request, key)
    },
    clock: time.clock,
    ownerWaitMs: lockWaitMs,
  })
}

function signedAdoption(request: AdoptionRequest, key: SigningKey): Uint8Array {
  const adoption = {
    found_device: request.foundDevice,
    inode: request.inode,
    pinned_device: request.pinnedDevice,
    schema: 'chio.caller-executor-adoption.v1',
    store_id: request.storeId,
  } as const
  return encode(SignedAdoption, { adoption, signature: toHex(key.sign(encode(AdoptionBody, adoption))) })
}
