// Owns how each vector document is read and verified in the fixed context that the vectors were made in. Must
// never relax a check for a vector: these are the functions that the processes call.
import {
  checkRegisterAcknowledgement,
  checkReleaseAcknowledgement,
  PrepareDispatchAcknowledgement,
  RegisterAttemptAcknowledgement,
  ReleaseAttemptAcknowledgement,
} from '../../protocol/acknowledgement.js'
import { BrokerCapabilityBody, SignedBrokerCapability, verifyCapability } from '../../protocol/capability.js'
import { type Codec, decode, encode } from '../../protocol/codec.js'
import { ExecutionEvidence, ExecutionEvidenceV1 } from '../../protocol/evidence.js'
import {
  BrokerExecuteRequest,
  RequestProof,
  RequestProofBody,
  verifyExecuteRequest,
} from '../../protocol/execute-request.js'
import {
  BrokerExecuteResponse,
  BrokerExecuteResponseV1,
  verifyHistoricalResponse,
  verifyResponseOf,
} from '../../protocol/execute-response.js'
import {
  BrokerExecuteFailure,
  checkFailureBody,
  ExecutionFailureReceiptBody,
  failureReference,
  SignedExecutionFailureReceipt,
  verifyFailure,
} from '../../protocol/failure.js'
import { signingKey } from '../../protocol/keys.js'
import {
  ExecutionReceiptBody,
  ExecutionReceiptBodyV1,
  SignedExecutionReceipt,
  SignedExecutionReceiptV1,
  verifyHistoricalReceipt,
  verifyReceipt,
} from '../../protocol/receipt.js'
import {
  AttemptRegistration,
  checkRegistration,
  SignedRegisterAttemptAuthorization,
  verifyRegistrationAuthorization,
} from '../../protocol/registration.js'
import { readDocument } from './vectors.js'

const seeded = (byte: number) => signingKey(new Uint8Array(32).fill(byte))

export const VECTOR_KEYS = {
  issuer: seeded(51),
  caller: seeded(52),
  /** Registration authority, and signer of the v1 receipts and of the failures. */
  authority: seeded(41),
  receipt: seeded(43),
}
export const VECTOR_NOW_UNIX_SECONDS = 100
export const VECTOR_TENANT = 'tenant-production'
export const VECTOR_PINS = {
  issuer: VECTOR_KEYS.issuer.publicKey,
  audience: 'broker-service-production',
  adapter: { id: 'generic-bearer', version: 1 },
  clockSkewSeconds: 1,
}

export function vectorRequest(folder: string): BrokerExecuteRequest {
  const bytes = readDocument(folder, 'broker/positive/broker-execute-request-v1.json')
  return decode(BrokerExecuteRequest, bytes, 'execute request')
}

export function vectorRegistration(folder: string): AttemptRegistration {
  const bytes = readDocument(folder, 'broker/positive/broker-attempt-registration-v1.json')
  return decode(AttemptRegistration, bytes, 'registration')
}

interface Judgement<T> {
  readonly codec: Codec<T>
  readonly verify: (document: T, folder: string) => unknown
}
const judged = <T>(codec: Codec<T>, verify: Judgement<T>['verify'] = () => {}): Judgement<never> =>
  ({ codec, verify }) as unknown as Judgement<never>

/** How a document of each vector file is verified. */
const JUDGEMENTS: Readonly<Record<string, Judgement<never>>> = {
  // Its nonce expiry is not proof issue + TTL (see the test): checked in itself, not against the request.
  'broker-attempt-registration-v1': judged(AttemptRegistration, checkRegistration),
  'broker-execute-failure-v1': judged(BrokerExecuteFailure, failure =>
    verifyFailure(failure, VECTOR_KEYS.authority.publicKey),
  ),
  'broker-execute-request-v1': judged(BrokerExecuteRequest, request =>
    verifyExecuteRequest(request, VECTOR_PINS, VECTOR_NOW_UNIX_SECONDS),
  ),
  'broker-execute-response-v1': judged(BrokerExecuteResponseV1, response =>
    verifyHistoricalResponse(response, VECTOR_KEYS.authority.publicKey),
  ),
  'broker-execute-response-v2': judged(BrokerExecuteResponse, (response, folder) =>
    verifyResponseOf(response, {
      request: vectorRequest(folder),
      registration: vectorRegistration(folder),
      receiptSigner: VECTOR_KEYS.receipt.publicKey,
    }),
  ),
  // Its preparedDispatchId does not follow the published derivation: structure only.
  'broker-prepare-dispatch-acknowledgement-v1': judged(PrepareDispatchAcknowledgement),
  'broker-register-attempt-acknowledgement-v1': judged(RegisterAttemptAcknowledgement, (ack, folder) =>
    checkRegisterAcknowledgement(ack, vectorRegistration(folder)),
  ),
  'broker-release-attempt-acknowledgement-v1': judged(ReleaseAttemptAcknowledgement, (ack, folder) =>
    checkReleaseAcknowledgement(ack, vectorRegistration(folder)),
  ),
  'broker-register-attempt-authorization-envelope-v1': judged(
    SignedRegisterAttemptAuthorization,
    (authorization, folder) =>
      verifyRegistrationAuthorization(
        authorization,
        vectorRegistration(folder),
        {
          action: 'register',
          tenantScope: VECTOR_TENANT,
          authority: VECTOR_KEYS.authority.publicKey,
          clockSkewSeconds: 1,
        },
        VECTOR_NOW_UNIX_SECONDS,
      ),
  ),
  'broker-capability-body-v1': judged(BrokerCapabilityBody),
  'broker-capability-envelope-v1': judged(SignedBrokerCapability, capability =>
    verifyCapability(capability, VECTOR_PINS, VECTOR_NOW_UNIX_SECONDS),
  ),
  'broker-execution-evidence-v1': judged(ExecutionEvidenceV1),
  'broker-execution-evidence-v2': judged(ExecutionEvidence),
  'broker-execution-failure-receipt-body-v1': judged(ExecutionFailureReceiptBody, checkFailureBody),
  'broker-execution-failure-receipt-envelope-v1': judged(SignedExecutionFailureReceipt, receipt =>
    verifyFailure(
      {
        diagnosticCode: receipt.body.diagnosticCode,
        receipt,
        receiptReference: failureReference(receipt),
      },
      VECTOR_KEYS.authority.publicKey,
    ),
  ),
  'broker-execution-receipt-body-v1': judged(ExecutionReceiptBodyV1),
  'broker-execution-receipt-body-v2': judged(ExecutionReceiptBody),
  'broker-execution-receipt-envelope-v1': judged(SignedExecutionReceiptV1, receipt =>
    verifyHistoricalReceipt(receipt, VECTOR_KEYS.authority.publicKey),
  ),
  'broker-execution-receipt-envelope-v2': judged(SignedExecutionReceipt, receipt =>
    verifyReceipt(receipt, VECTOR_KEYS.receipt.publicKey),
  ),
  'broker-request-proof-body-v1': judged(RequestProofBody),
  'broker-request-proof-envelope-v1': judged(RequestProof),
}

/**
 * Reads and verifies a document of one vector file.
 * @returns its bytes, encoded again
 * @throws BrokerError as the processes would
 */
export function judgeVector(name: string, bytes: Uint8Array, folder: string): Uint8Array {
  const judgement = JUDGEMENTS[name]
  if (judgement === undefined) throw new Error(`no judgement for vector ${name}`)
  const document = decode(judgement.codec, bytes, name)
  judgement.verify(document, folder)
  return encode(judgement.codec, document)
}
