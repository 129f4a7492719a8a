// Owns: how the exact execute request rests in the store: encrypted for its own operation.
// Must never: be opened as anything but the request that was sealed for this operation.
// Source: the retained request of the kernel's store.
import { decode } from '../protocol/codec.js'
import { BrokerError } from '../protocol/errors.js'
import { BrokerExecuteRequest } from '../protocol/execute-request.js'
import type { SealedRequest } from './operation.js'
import { openBytes, sealBytes } from './sealed-bytes.js'

const DOMAIN = 'chio.kernel-retained-request.v1'

/** Encrypts the canonical bytes of a request. */
export function sealRequest(
  storageKey: Uint8Array,
  operationId: string,
  canonical: Uint8Array,
): SealedRequest {
  return sealBytes(storageKey, { domain: DOMAIN, operationId }, canonical)
}

/** @throws BrokerError `storage` when key, operation or bytes do not belong together. */
export function openRequest(
  storageKey: Uint8Array,
  operationId: string,
  sealed: SealedRequest,
): BrokerExecuteRequest {
  try {
    const canonical = openBytes(storageKey, { domain: DOMAIN, operationId }, sealed)
    return decode(BrokerExecuteRequest, canonical, 'retained request')
  } catch (cause) {
    throw new BrokerError(
      'storage',
      'retained request refused: expected one sealed for this operation under this storage key',
      { cause },
    )
  }
}
