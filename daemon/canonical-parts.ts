// Owns finding a document inside the canonical bytes that it was decoded from: members stand in a fixed order, so
// that the length of what precedes one says where it begins. A large body is then neither copied nor encoded again.
// Must never: be used on bytes that were not decoded as exactly this document.
// Source: RFC 8785 (one encoding for one value).
import { encode } from '../protocol/codec.js'
import {
  type BrokerExecuteRequest,
  EXECUTE_SCHEMA,
  requestCanonicalDigestOf,
  requestDigestOf,
  RequestProof,
} from '../protocol/execute-request.js'
import { SignedBrokerCapability } from '../protocol/capability.js'
import { AttemptRegistration, type RequestDigests } from '../protocol/registration.js'

/** The execute request inside an attempt request. */
export function executePart(payload: Uint8Array, registration: AttemptRegistration): Uint8Array {
  const before = ['{"registration":', encode(AttemptRegistration, registration), ',"request":']
  return payload.subarray(lengthOf(before), payload.length - '}'.length)
}

/** Both digests of an execute request, over its bytes. */
export function digestsOf(execute: BrokerExecuteRequest, canonical: Uint8Array): RequestDigests {
  const before = [
    '{"capability":',
    encode(SignedBrokerCapability, execute.capability),
    `,"invocationId":${JSON.stringify(execute.invocationId)},"proof":`,
    encode(RequestProof, execute.proof),
    ',"request":',
  ]
  const after = `,"schema":"${EXECUTE_SCHEMA}"}`
  return {
    requestCanonicalDigest: requestCanonicalDigestOf(canonical),
    requestDigest: requestDigestOf(canonical.subarray(lengthOf(before), canonical.length - after.length)),
  }
}

function lengthOf(parts: readonly (string | Uint8Array)[]): number {
  return parts.reduce((total, part) => total + Buffer.byteLength(part), 0)
}
