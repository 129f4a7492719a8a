// Documents made by the other implementation verify bit for bit, spoiled ones fail in the expected class, and
// every digest and frame recomputes.
import { readdirSync } from 'node:fs'
import { basename, join } from 'node:path'
import { expect, test } from 'vitest'
import { preparedDispatchId, PrepareDispatchAcknowledgement } from '../../protocol/acknowledgement.js'
import { AuthenticatedAttemptRequest, executeFrameBody } from '../../protocol/attempt-request.js'
import { canonicalBytes } from '../../protocol/canonical.js'
import { capabilityDigest } from '../../protocol/capability.js'
import { decode, encode } from '../../protocol/codec.js'
import { sha256Hex, toHex } from '../../protocol/digest.js'
import { encodeRequest } from '../../protocol/envelope.js'
import { isBrokerError } from '../../protocol/errors.js'
import {
  BrokerExecuteRequest,
  callerHeadersDigest,
  callerOptionsDigest,
  proofDigest,
  requestCanonicalDigest,
  requestDigest,
} from '../../protocol/execute-request.js'
import { SignedExecutionNonce, signExecutionNonce, verifyNonce } from '../../protocol/execution-nonce.js'
import { failureReceiptId } from '../../protocol/failure.js'
import { encodeFrame } from '../../protocol/frame.js'
import { revocationSet, revocationSetDigest } from '../../protocol/hold.js'
import type { JsonValue } from '../../protocol/json.js'
import { admitPublicKey, signingKey } from '../../protocol/keys.js'
import { receiptIdOf } from '../../protocol/receipt.js'
import {
  buildRegistration,
  registrationDigest,
  SignedRegisterAttemptAuthorization,
  signRegistrationAuthorization,
} from '../../protocol/registration.js'
import {
  judgeVector,
  VECTOR_KEYS,
  VECTOR_NOW_UNIX_SECONDS,
  VECTOR_TENANT,
  vectorRegistration,
  vectorRequest,
} from '../support/broker-vectors.js'
import { describeVectors, readDocument, readVectors } from '../support/vectors.js'

const namesIn = (folder: string, part: string): string[] =>
  readdirSync(join(folder, 'broker', part)).map(file => basename(file, '.json'))

describeVectors('positive broker vectors', folder => {
  test('are nine', () => {
    expect(namesIn(folder, 'positive')).toHaveLength(9)
  })

  test.each([
    ...namesIn(folder, 'positive').map(name => ['positive', name] as const),
    ...namesIn(folder, 'derived').map(name => ['derived', name] as const),
  ])('%s/%s verifies and re-encodes to the same bytes', (part, name) => {
    const bytes = readDocument(folder, 'broker', part, `${name}.json`)
    expect(toHex(judgeVector(name, bytes, folder))).toBe(toHex(bytes))
  })
})

interface Mutation {
  readonly id: string
  readonly base: string
  readonly mutation: { op: string; path?: string; value?: JsonValue; hex?: string }
  readonly expected: { json_schema_valid: boolean }
}
/** An identity, a binding or a truth table that is wrong in itself; everything else is denied. */
const WRONG_IN_ITSELF = new Set([
  'capability_noncanonical_trailing_newline',
  'capability_parent_self_binding',
  'capability_subject_proof_mismatch',
  'attempt_registration_id_rebound',
  'failure_receipt_partial_attempt_binding',
  'failure_receipt_untruthful_dispatch_state',
])

describeVectors('spoiled broker vectors', folder => {
  const { cases } = readVectors<{ cases: Mutation[] }>(folder, 'broker/mutations-v1.json')

  test('are ten', () => {
    expect(cases).toHaveLength(10)
  })

  test.each(cases.map(mutation => [mutation.id, mutation] as const))('%s is refused', (id, mutation) => {
    const name = basename(mutation.base, '.json')
    const bytes = spoil(readBase(name), mutation.mutation)
    const atShape = !mutation.expected.json_schema_valid
    const expected = atShape || WRONG_IN_ITSELF.has(id) ? 'invalid_request' : 'authorization_denied'
    expect(refusalOf(name, bytes, folder)).toBe(expected)
  })

  test.each([
    ['capability with its own id as parent', 'broker-capability-envelope-v1', 'parentCapabilityId'],
    [
      'failure that says committed at admission',
      'broker-execution-failure-receipt-body-v1',
      'dispatchKnowledge',
    ],
  ])('a %s is refused in itself', (_what, name, member) => {
    const document = JSON.parse(Buffer.from(readBase(name)).toString()) as Record<string, JsonValue>
    const body = (document['body'] ?? document) as Record<string, JsonValue>
    body[member] = member === 'dispatchKnowledge' ? 'committed' : (body['capabilityId'] as string)
    expect(refusalOf(name, canonicalBytes(document), folder)).toBe('invalid_request')
  })

  /** A base lies in one of two folders, whatever its path says. */
  function readBase(name: string): Uint8Array {
    const part = namesIn(folder, 'positive').includes(name) ? 'positive' : 'derived'
    return readDocument(folder, 'broker', part, `${name}.json`)
  }
})

function refusalOf(name: string, bytes: Uint8Array, folder: string): string {
  try {
    judgeVector(name, bytes, folder)
    return 'accepted'
  } catch (error) {
    return isBrokerError(error) ? error.code : `another error: ${String(error)}`
  }
}

/** Applies one operation of RFC 6902, or appends bytes. */
function spoil(bytes: Uint8Array, mutation: Mutation['mutation']): Uint8Array {
  if (mutation.op === 'append_bytes') return Buffer.concat([bytes, Buffer.from(mutation.hex ?? '', 'hex')])
  const document = JSON.parse(Buffer.from(bytes).toString()) as JsonValue
  const path = (mutation.path ?? '').split('/').slice(1)
  const last = path.pop() as string
  const parent = path.reduce<Record<string, JsonValue>>(
    (object, name) => object[name] as Record<string, JsonValue>,
    document as Record<string, JsonValue>,
  )
  if (mutation.op === 'remove') delete parent[last]
  else parent[last] = mutation.value ?? null
  return canonicalBytes(document)
}

interface Frame {
  readonly payload_len: number
  readonly length_prefix_hex: string
  readonly sha256: string
}

describeVectors('computed broker digests', folder => {
  const computed = readVectors<Record<string, unknown> & { frames: Record<string, Frame> }>(
    folder,
    'broker/computed.json',
  )
  const request = vectorRequest(folder)
  const registration = vectorRegistration(folder)

  test.each([
    ['capability_digest*', () => capabilityDigest(request.capability)],
    ['request_digest*', () => requestDigest(request.request)],
    ['request_canonical_digest*', () => requestCanonicalDigest(request)],
    ['proof_digest*', () => proofDigest(request.proof)],
    ['caller_headers_sha256_empty_list*', () => callerHeadersDigest([])],
    ['caller_options_sha256*', () => callerOptionsDigest(request.request.options)],
    ['registration_digest*', () => registrationDigest(registration)],
    [
      'prepared_dispatch_id_by_source_formula(NOT equal to upstream ack fixture)',
      () => preparedDispatchId(registration),
    ],
    ['failure_receipt_id', () => failureReceiptId(registration.requestCanonicalDigest)],
    ['success_receipt_id_runtime', () => receiptIdOf(registration.ids.attemptId)],
    ['revocation_set_members_no_ancestors', () => revocationSet(revocationIds())],
    ['revocation_set_digest_no_ancestors', () => revocationSetDigest(revocationIds())],
    ['canonical_execute_request_bytes', () => encode(BrokerExecuteRequest, request).length],
    ['prepared_binding_expected_frame_sha256', () => sha256Hex(executeFrameBody(request, VECTOR_TENANT))],
    ['prepare_authorization_envelope', () => authorization('prepare')],
  ] as const)('%s recomputes', (name, compute) => {
    expect(compute()).toEqual(computed[name])
  })

  test.each(Object.keys(computed.frames))('the frame of %s recomputes', operation => {
    const expected = computed.frames[operation] as Frame
    const body = frameBody(operation)
    expect(body.length).toBe(expected.payload_len)
    expect(toHex(encodeFrame(body).subarray(0, 4))).toBe(expected.length_prefix_hex)
    expect(sha256Hex(body)).toBe(expected.sha256)
  })

  test('the published prepare acknowledgement is the one that does not follow its own derivation', () => {
    const bytes = readDocument(folder, 'broker/positive/broker-prepare-dispatch-acknowledgement-v1.json')
    const acknowledgement = decode(PrepareDispatchAcknowledgement, bytes, 'acknowledgement')
    expect(acknowledgement.preparedDispatchId).not.toBe(preparedDispatchId(registration))
  })

  test('the published registration is the one derived from the request, but for its nonce expiry', () => {
    const derived = buildRegistration(request, registration)
    expect(derived.nonceExpiresAtUnixSeconds).toBe(130)
    expect({ ...derived, nonceExpiresAtUnixSeconds: 120 }).toEqual(registration)
  })

  function revocationIds(): string[] {
    const { parentCapabilityId, capabilityId, revocationId } = request.capability.body
    return [parentCapabilityId, capabilityId, revocationId]
  }

  function authorization(action: 'prepare' | 'register') {
    return signRegistrationAuthorization(
      {
        action,
        registrationDigest: registrationDigest(registration),
        tenantScope: VECTOR_TENANT,
        issuedAtUnixSeconds: VECTOR_NOW_UNIX_SECONDS,
      },
      VECTOR_KEYS.authority,
    )
  }

  function frameBody(operation: string): Uint8Array {
    if (operation === 'execute') return executeFrameBody(request, VECTOR_TENANT)
    const signed = authorization(operation === 'register_attempt' ? 'register' : 'prepare')
    return encodeRequest({
      authorization: encode(SignedRegisterAttemptAuthorization, signed),
      operation,
      payload: encode(AuthenticatedAttemptRequest, { registration, request }),
      tenantScope: VECTOR_TENANT,
    })
  }
})

interface NonceVector {
  readonly issuer: string
  readonly seed: string
  readonly v2: JsonValue
  readonly v2_operation_id: string
}

describeVectors('derived execution nonce', folder => {
  const vector = readVectors<NonceVector>(folder, 'derived/execution-nonce.json')
  const signed = decode(SignedExecutionNonce, canonicalBytes(vector.v2), 'execution nonce')
  const issuer = admitPublicKey(vector.issuer, 'issuer')

  test('belongs to its operation and to no other', () => {
    const { bound_to: boundTo, issued_at: nowUnixSeconds } = signed.nonce
    const under = (operationId: string) =>
      verifyNonce(signed, { boundTo, issuer, nowUnixSeconds, operationId })
    expect(under(vector.v2_operation_id)).toEqual({ operationId: vector.v2_operation_id, signed })
    expect(() => under(sha256Hex(new Uint8Array(0)))).toThrow(
      expect.objectContaining({ code: 'execution_nonce_signature' }),
    )
  })

  test('is signed again to the same bytes', () => {
    const key = signingKey(Buffer.from(vector.seed, 'hex'))
    expect(signExecutionNonce(signed.nonce, vector.v2_operation_id, key)).toEqual(vector.v2)
  })
})
