// Owns one document of every kind, made from fixed seeds and times by the same functions that the processes call.
// They are frozen in test/vectors/documents.json: a change of any byte on the wire shows there. Must never hold
// a real secret.
import {
  PREPARE_ACKNOWLEDGEMENT_SCHEMA,
  PrepareDispatchAcknowledgement,
  preparedDispatchId,
} from '../../protocol/acknowledgement.js'
import { AdminAuthorization, signAdminRequest } from '../../protocol/administration.js'
import { AuthenticatedAttemptRequest, executeEnvelope } from '../../protocol/attempt-request.js'
import { SignedAuthorityRequest, SignedAuthorityResponse } from '../../protocol/authority-rpc.js'
import { SignedBrokerCapability } from '../../protocol/capability.js'
import { Checkpoint } from '../../protocol/checkpoint.js'
import { type Codec, encode } from '../../protocol/codec.js'
import {
  CredentialMutation,
  SignedAdminMutationReceipt,
  signMutationReceipt,
} from '../../protocol/credential-mutation.js'
import { sha256Hex } from '../../protocol/digest.js'
import { AuthenticatedIpcRequest, IpcResponse } from '../../protocol/envelope.js'
import { BrokerExecuteRequest, requestDigest } from '../../protocol/execute-request.js'
import { BrokerExecuteResponse } from '../../protocol/execute-response.js'
import { ExportManifest } from '../../protocol/export-manifest.js'
import { SignedExecutionNonce, signExecutionNonce } from '../../protocol/execution-nonce.js'
import { BrokerExecuteFailure } from '../../protocol/failure.js'
import { Grant } from '../../protocol/grant.js'
import { KernelReceipt, KernelReceiptBody, receiptBodyOf } from '../../protocol/kernel-receipt.js'
import { ConsistencyProof, ReceiptInclusionProof } from '../../protocol/log-proof.js'
import { AttemptRegistration, SignedRegisterAttemptAuthorization } from '../../protocol/registration.js'
import { KernelRequest, KernelResponse } from '../../protocol/kernel-rpc.js'
import { AttemptStatus, SlotStatus } from '../../protocol/status.js'
import { callerDocuments } from './own-caller.js'
import { call, tokenDocuments } from './own-tokens.js'
import { checkpoint, consistencyProof, exportManifest, inclusionProof, kernelReceipt } from './own-log.js'
import { answer, captured, failure, holdQuery, parentQuery, question, response } from './own-outcome.js'
import {
  NOW,
  OPERATION_ID,
  OWN_KEYS,
  TENANT,
  authorized,
  capability,
  credential,
  execute,
  grant,
  registration,
  request,
  utf8,
} from './own-request.js'

const mutation: CredentialMutation = {
  credential,
  mutation: 'provision',
  placement: { kind: 'basic_authorization', user: 'robot' },
  schema: 'chio.broker-credential-mutation.v2',
  secret: utf8('not-a-secret-of-anyone'),
}
const adminRequest = {
  operation: 'provision',
  payload: encode(CredentialMutation, mutation),
  tenantScope: TENANT,
}

export interface OwnDocument {
  /** Also the name of its frozen bytes. */
  readonly name: string
  readonly codec: Codec<unknown>
  readonly value: unknown
}
const document = <T>(name: string, codec: Codec<T>, value: T): OwnDocument => ({ name, codec, value })

/** One document of every kind that crosses a process border. */
export function ownDocuments(): readonly OwnDocument[] {
  return [
    document('grant', Grant, grant),
    document('broker-capability', SignedBrokerCapability, capability),
    document('execute-request', BrokerExecuteRequest, execute),
    document('attempt-registration', AttemptRegistration, registration),
    document('attempt-request', AuthenticatedAttemptRequest, { registration, request: execute }),
    document('register-authorization', SignedRegisterAttemptAuthorization, authorized('register')),
    document('prepare-authorization', SignedRegisterAttemptAuthorization, authorized('prepare')),
    document('release-authorization', SignedRegisterAttemptAuthorization, authorized('release')),
    document('prepare-acknowledgement', PrepareDispatchAcknowledgement, {
      attemptId: registration.ids.attemptId,
      operationId: OPERATION_ID,
      preparedAtUnixSeconds: NOW + 2,
      preparedDispatchId: preparedDispatchId(registration),
      schema: PREPARE_ACKNOWLEDGEMENT_SCHEMA,
    }),
    document('execute-envelope', AuthenticatedIpcRequest, executeEnvelope(execute, TENANT)),
    document('execute-response', BrokerExecuteResponse, response()),
    document('execute-failure', BrokerExecuteFailure, failure),
    document('ipc-response', IpcResponse, {
      accepted: false,
      errorCode: failure.diagnosticCode,
      operation: 'execute',
      response: encode(BrokerExecuteFailure, failure),
    }),
    document('ipc-decline', IpcResponse, {
      accepted: false,
      errorCode: 'conflict',
      operation: 'prepare_connection',
      response: new Uint8Array(0),
    }),
    document('authority-hold-query', SignedAuthorityRequest, question(holdQuery)),
    document(
      'authority-hold',
      SignedAuthorityResponse,
      answer(holdQuery, { kind: 'hold', response: { captured } }),
    ),
    document(
      'authority-hold-unknown',
      SignedAuthorityResponse,
      answer(holdQuery, { kind: 'hold', response: 'unknown' }),
    ),
    document('authority-live-parent-query', SignedAuthorityRequest, question(parentQuery)),
    document(
      'authority-rejection',
      SignedAuthorityResponse,
      answer(parentQuery, { kind: 'rejected', response: { code: 'authorization_denied' } }),
    ),
    document(
      'execution-nonce',
      SignedExecutionNonce,
      signExecutionNonce(
        {
          bound_to: {
            capability_id: 'grant-own',
            parameter_hash: requestDigest(request),
            request_id: execute.invocationId,
            subject_id: OWN_KEYS.caller.publicKey,
            tool_name: 'POST',
            tool_server: 'tracker.example',
          },
          expires_at: NOW + 60,
          issued_at: NOW,
          nonce_id: '00000000-0000-4000-8000-000000000000',
          schema: 'chio.execution_nonce.v2',
        },
        OPERATION_ID,
        OWN_KEYS.authority,
      ),
    ),
    document('credential-mutation', CredentialMutation, mutation),
    document('kernel-receipt', KernelReceipt, kernelReceipt),
    document('kernel-receipt-body', KernelReceiptBody, receiptBodyOf(kernelReceipt)),
    document('checkpoint', Checkpoint, checkpoint),
    document('inclusion-proof', ReceiptInclusionProof, inclusionProof),
    document('consistency-proof', ConsistencyProof, consistencyProof),
    document('export-manifest', ExportManifest, exportManifest),
    document(
      'admin-authorization',
      AdminAuthorization,
      signAdminRequest(
        adminRequest,
        {
          subject: 'administrator',
          requestId: 'request-own',
          issuedAtUnixSeconds: NOW,
          lifetimeSeconds: 300,
        },
        OWN_KEYS.admin,
      ),
    ),
    document(
      'admin-mutation-receipt',
      SignedAdminMutationReceipt,
      signMutationReceipt(
        {
          authorizationDigest: sha256Hex(utf8('authorization')),
          completedAtUnixSeconds: NOW + 1,
          credential,
          intentDigest: sha256Hex(utf8('intent')),
          operation: 'provision',
          operationId: OPERATION_ID,
          outcome: 'applied',
          requestId: 'request-own',
          schema: 'chio.broker-admin-mutation-receipt.v1',
          tenantScope: TENANT,
        },
        OWN_KEYS.receipt,
      ),
    ),
    document('slot-status', SlotStatus, {
      ageMs: 12,
      attemptId: registration.ids.attemptId,
      connector: { pid: 4242, uid: 1000 },
      deadlineLimit: 'lifetime',
      declining: {
        grants: [{ abandoned: 4, parentCapabilityId: 'grant-own', retryAfterMs: 1_000 }],
        providers: [{ hangs: 3, host: 'api.example.com', method: 'POST', port: 443, retryAfterMs: 0 }],
      },
      decryptions: 0,
      lastRelease: { attemptId: null, reason: 'end_of_stream', releasedAtUnixMs: NOW * 1000 },
      leftMs: 29_988,
      operationId: OPERATION_ID,
      schema: 'chio.broker-slot-status.v2',
      state: 'waiting',
    }),
    document('attempt-status', AttemptStatus, {
      attemptId: registration.ids.attemptId,
      endedAtUnixMs: NOW * 1000 + 5,
      dispatchCommittedAtUnixMs: null,
      expectedFrameSha256: sha256Hex(utf8('expected')),
      held: false,
      operationId: OPERATION_ID,
      parentCapabilityId: 'grant-own',
      reason: 'substituted_frame',
      receiptReference: null,
      registeredAtUnixMs: NOW * 1000,
      requestCanonicalDigest: registration.requestCanonicalDigest,
      schema: 'chio.broker-attempt-status.v1',
      state: 'failed',
      submittedFrameBytes: 13_480,
      submittedFrameSha256: sha256Hex(utf8('submitted')),
    }),
    ...tokenDocuments(),
    ...callerDocuments(call),
  ]
}

/** Two documents of the kernel's socket: not frozen, since its operations still grow. */
export function kernelDocuments(): readonly OwnDocument[] {
  const requestId = sha256Hex(utf8('kernel request'))
  return [
    document('kernel-request', KernelRequest, {
      authorization: null,
      operation: { kind: 'authorize_registration', request: { execute, operationId: OPERATION_ID } },
      requestId,
      schema: 'chio.kernel-rpc.v1',
      tenantScope: TENANT,
    }),
    document('kernel-response', KernelResponse, {
      refusal: null,
      requestId,
      result: {
        kind: 'start',
        response: { captured, operationId: OPERATION_ID, startedAtUnixMs: NOW * 1000 },
      },
      schema: 'chio.kernel-rpc-response.v1',
    }),
  ]
}
