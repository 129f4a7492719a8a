// Owns: how the exact request of an operation rests in the store: the execute request of a brokered one, the call of an
// agent; encrypted for its own operation.
// Must never: be opened as anything but the request that was sealed for this operation.
// Source: the retained request of the kernel's store.
import { type Codec, decode, encode } from '../protocol/codec.js'
import { BrokerError } from '../protocol/errors.js'
import { BrokerExecuteRequest } from '../protocol/execute-request.js'
import { ToolCallRequest } from '../protocol/tool-call.js'
import type { SealedRequest } from './operation/operation.js'
import { openBytes, sealBytes, type SealPurpose } from './sealed-bytes.js'

const REQUEST_DOMAIN = 'chio.kernel-retained-request.v1'
const CALL_DOMAIN = 'chio.kernel-retained-call.v1'

/** Encrypts the canonical bytes of a request. */
export function sealRequest(
  storageKey: Uint8Array,
  operationId: string,
  canonical: Uint8Array,
): SealedRequest {
  return sealBytes(storageKey, { domain: REQUEST_DOMAIN, operationId }, canonical)
}

/** @throws BrokerError `storage` when key, operation or bytes do not belong together. */
export function openRequest(
  storageKey: Uint8Array,
  operationId: string,
  sealed: SealedRequest,
): BrokerExecuteRequest {
  return opened(BrokerExecuteRequest, sealed, {
    storageKey,
    purpose: { domain: REQUEST_DOMAIN, operationId },
  })
}

export function sealCall(
  storageKey: Uint8Array,
  operationId: string,
  request: ToolCallRequest,
): SealedRequest {
  return sealBytes(storageKey, { domain: CALL_DOMAIN, operationId }, encode(ToolCallRequest, request))
}

/** @throws BrokerError `storage` when key, operation or bytes do not belong together. */
export function openCall(
  storageKey: Uint8Array,
  operationId: string,
  sealed: SealedRequest,
): ToolCallRequest {
  return opened(ToolCallRequest, sealed, { storageKey, purpose: { domain: CALL_DOMAIN, operationId } })
}

function opened<T>(
  codec: Codec<T>,
  sealed: SealedRequest,
  { purpose, storageKey }: { readonly purpose: SealPurpose; readonly storageKey: Uint8Array },
): T {
  try {
    return decode(codec, openBytes(storageKey, purpose, sealed), 'retained request')
  } catch (cause) {
    throw new BrokerError(
      'storage',
      'retained request refused: expected one sealed for this operation under this storage key, got another',
      { cause },
    )
  }
}
