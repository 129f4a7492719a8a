// The two envelopes of the broker socket: one request, one response. Everything inside travels as
// bytes, so that what was signed is what was received.
import { boolean, bytes, decode, encode, type Infer, nullable, object, text } from './codec.js'
import { BrokerError } from './errors.js'
import {
  MAXIMUM_AUTHORIZATION_BYTES,
  MAXIMUM_DIAGNOSTIC_CODE_BYTES,
  MAXIMUM_ENVELOPE_RESPONSE_BYTES,
  MAXIMUM_IDENTIFIER_BYTES,
  MAXIMUM_OPERATION_NAME_BYTES,
  MAXIMUM_PAYLOAD_BYTES,
} from './limits.js'

/** Every operation of the protocol. Those that this broker does not serve yet are refused by name. */
export const BROKER_OPERATIONS = [
  'attempt_status',
  'credential_list',
  'delete',
  'disable',
  'execute',
  'issue',
  'prepare_connection',
  'prepare_dispatch',
  'provision',
  'register_attempt',
  'release_attempt',
  'revoke',
  'rotate',
  'slot_status',
  'status',
] as const
export type BrokerOperation = (typeof BROKER_OPERATIONS)[number]

export const AuthenticatedIpcRequest = object({
  authorization: bytes({ max: MAXIMUM_AUTHORIZATION_BYTES }),
  operation: text({ minBytes: 1, maxBytes: MAXIMUM_OPERATION_NAME_BYTES }),
  payload: bytes({ max: MAXIMUM_PAYLOAD_BYTES }),
  tenantScope: text({ minBytes: 1, maxBytes: MAXIMUM_IDENTIFIER_BYTES }),
})
export type AuthenticatedIpcRequest = Infer<typeof AuthenticatedIpcRequest>

export const IpcResponse = object({
  accepted: boolean(),
  errorCode: nullable(text({ minBytes: 1, maxBytes: MAXIMUM_DIAGNOSTIC_CODE_BYTES })),
  operation: text({ minBytes: 1, maxBytes: MAXIMUM_OPERATION_NAME_BYTES }),
  response: bytes({ max: MAXIMUM_ENVELOPE_RESPONSE_BYTES }),
})
export type IpcResponse = Infer<typeof IpcResponse>

const ERROR_CODE = /^[a-z](?:[a-z0-9]|_(?!_)){0,62}[a-z0-9]$|^[a-z]$/
const DIAGNOSTIC_CODE = /^chio\.[a-z0-9._-]{1,123}$/
/** Answers of a replay that found nothing to replay; they carry no failure receipt. */
const REPLAY_CODES: ReadonlySet<string> = new Set(['attempt_pending', 'attempt_unknown'])

/** Encodes a request; the result is the frame body. */
export function encodeRequest(request: AuthenticatedIpcRequest): Uint8Array {
  return encode(AuthenticatedIpcRequest, request)
}

/**
 * Decodes and checks a response to one operation.
 * @throws BrokerError `invalid_request` when the envelope contradicts itself or answers another operation.
 */
export function decodeResponse(body: Uint8Array, operation: BrokerOperation): IpcResponse {
  const response = decode(IpcResponse, body, 'IPC response')
  checkResponse(response, operation)
  return response
}

/** The rules between the members; applied by the daemon before it writes and by the client after it reads. */
export function checkResponse(response: IpcResponse, operation: string): void {
  if (response.operation !== operation) refuse('operation', 'the operation that was asked')
  if (response.accepted) {
    if (response.errorCode !== null) refuse('errorCode', 'null where the request was accepted')
    if (response.response.length === 0) refuse('response', 'content where the request was accepted')
    return
  }
  if (operation === 'execute' && !REPLAY_CODES.has(response.errorCode ?? '')) {
    if (!DIAGNOSTIC_CODE.test(response.errorCode ?? '')) refuse('errorCode', 'chio.broker.<code>')
    if (response.response.length === 0) refuse('response', 'the signed failure')
    return
  }
  if (!ERROR_CODE.test(response.errorCode ?? '')) refuse('errorCode', 'a lower-case code')
  if (response.response.length !== 0) refuse('response', 'nothing where the request was declined')
}

function refuse(member: string, expected: string): never {
  throw new BrokerError('invalid_request', `IPC response ${member} refused: expected ${expected}`)
}
