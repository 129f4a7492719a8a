// What register, prepare and release carry beside the authority's signature, and the one execute frame
// that a registration binds: built the same way by host, broker and kernel.
import { encode, type Infer, object } from './codec.js'
import { type AuthenticatedIpcRequest, encodeRequest } from './envelope.js'
import { BrokerExecuteRequest, RequestProof } from './execute-request.js'
import { AttemptRegistration } from './registration.js'

/** Payload of `register_attempt`, `prepare_connection` and `release_attempt`. */
export const AuthenticatedAttemptRequest = object({
  registration: AttemptRegistration,
  request: BrokerExecuteRequest,
})
export type AuthenticatedAttemptRequest = Infer<typeof AuthenticatedAttemptRequest>

/** The envelope that submits a request: authorization is the canonical proof, payload the canonical request. */
export function executeEnvelope(request: BrokerExecuteRequest, tenantScope: string): AuthenticatedIpcRequest {
  return {
    authorization: encode(RequestProof, request.proof),
    operation: 'execute',
    payload: encode(BrokerExecuteRequest, request),
    tenantScope,
  }
}

/** The exact frame body of that envelope, without the four length bytes. */
export function executeFrameBody(request: BrokerExecuteRequest, tenantScope: string): Uint8Array {
  return encodeRequest(executeEnvelope(request, tenantScope))
}
