// Owns what the prepared stream will accept: the SHA-256 and the exact length of one canonical execute frame.
// Must never: keep a submitted frame. What is refused leaves its hash and its length behind, nothing else.
// Source: the broker protocol's prepared connection slot, section 9 ("Binding").
import { timingSafeEqual } from 'node:crypto'
import { encode } from '../protocol/codec.js'
import { encodeSliced } from '../protocol/codec.js'
import { sha256, toHex } from '../protocol/digest.js'
import { AuthenticatedIpcRequest } from '../protocol/envelope.js'
import { type BrokerExecuteRequest, RequestProof } from '../protocol/execute-request.js'
import { nextSlice } from './turn-of-loop.js'

export interface FrameBinding {
  readonly frameBytes: number
  readonly sha256Hex: string
  readonly sha256: Uint8Array
}

/**
 * Binds a stream to one exact frame.
 * @param payload the canonical bytes of the same request, so that they are not written twice.
 */
export async function bindFrame(
  request: BrokerExecuteRequest,
  payload: Uint8Array,
  tenantScope: string,
): Promise<FrameBinding> {
  const authorization = encode(RequestProof, request.proof)
  const envelope = { authorization, operation: 'execute', payload, tenantScope }
  const frame = await encodeSliced(AuthenticatedIpcRequest, envelope, nextSlice)
  const digest = sha256(frame)
  const binding = { frameBytes: frame.length, sha256: digest, sha256Hex: toHex(digest) }
  frame.fill(0)
  return binding
}

/** @returns undefined when the frame is the bound one, else its hash. */
export function foreignFrameHash(binding: FrameBinding, frame: Uint8Array): string | undefined {
  const submitted = sha256(frame)
  return timingSafeEqual(submitted, binding.sha256) ? undefined : toHex(submitted)
}
