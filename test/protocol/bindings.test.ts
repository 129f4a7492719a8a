// Every member of a document counts: changed alone, and signed again by the right key, it is refused unless it is
// listed here as the broker's own statement. The lists read as policy.
import { describe, expect, test } from 'vitest'
import { checkPrepareAcknowledgement, preparedDispatchId } from '../../protocol/acknowledgement.js'
import { BrokerCapabilityBody } from '../../protocol/capability.js'
import { decode, encode } from '../../protocol/codec.js'
import { BrokerError, isBrokerError } from '../../protocol/errors.js'
import {
  BrokerExecuteRequest,
  RequestProofBody,
  verifyExecuteRequest,
} from '../../protocol/execute-request.js'
import { BrokerExecuteResponse, verifyFailureOf, verifyResponseOf } from '../../protocol/execute-response.js'
import {
  BrokerExecuteFailure,
  ExecutionFailureReceiptBody,
  failureReference,
} from '../../protocol/failure.js'
import { ExecutionReceiptBody, receiptReference } from '../../protocol/receipt.js'
import {
  AttemptRegistration,
  checkRegistrationOf,
  verifyRegistrationAuthorization,
} from '../../protocol/registration.js'
import { signEnvelope } from '../../protocol/signing.js'
import { changedAt, leafPaths, type Path } from '../support/changed-members.js'
import { failure, response } from '../support/own-outcome.js'
import {
  AUDIENCE,
  authorized,
  execute,
  NOW,
  OPERATION_ID,
  OWN_KEYS,
  registration,
  TENANT,
} from '../support/own-request.js'

const pins = {
  issuer: OWN_KEYS.issuer.publicKey,
  audience: AUDIENCE,
  adapter: { id: 'https', version: 1 },
  clockSkewSeconds: 1,
}
const context = { request: execute, registration, receiptSigner: OWN_KEYS.receipt.publicKey }
/** Signing again makes these two anew, so that their change is gone. */
const isNotMadeAnew = (path: string): boolean => !/\.(algorithm|signature)$/.test(path)
const named = (path: Path): string => path.join('.')

/** Paths of the changes that were accepted. Any error but a refusal of the protocol fails the test. */
function acceptedChanges<T>(document: T, judge: (changed: T, path: Path) => unknown): string[] {
  return leafPaths(document)
    .filter(path => {
      try {
        judge(changedAt(document, path), path)
        return true
      } catch (error) {
        if (isBrokerError(error)) return false
        throw error
      }
    })
    .map(named)
}

describe('an execute request', () => {
  const judge = (changed: BrokerExecuteRequest): void => {
    encode(BrokerExecuteRequest, changed)
    verifyExecuteRequest(changed, pins, NOW + 2)
    checkRegistrationOf(registration, changed)
  }

  test('is accepted as it is', () => {
    expect(() => judge(execute)).not.toThrow()
  })

  test('is refused with any member changed, the signatures left as they were', () => {
    expect(acceptedChanges(execute, changed => shaped(() => judge(changed)))).toEqual([])
  })

  test('is not the registered one with any member changed and both signatures made again', () => {
    const accepted = acceptedChanges(execute, changed => shaped(() => judge(resigned(changed))))
    expect(accepted.filter(isNotMadeAnew)).toEqual([])
  })

  test('is refused before, at and after its times', () => {
    for (const now of [NOW - 2, NOW + 60, NOW + 61, NOW + 62]) {
      expect(() => verifyExecuteRequest(execute, pins, now)).toThrow(/refused/)
    }
    for (const now of [NOW, NOW + 1, NOW + 59]) {
      expect(() => verifyExecuteRequest(execute, pins, now)).not.toThrow()
    }
  })

  function resigned(changed: BrokerExecuteRequest): BrokerExecuteRequest {
    const { capability, proof } = changed
    return {
      ...changed,
      capability: again(
        'chio.broker-capability-signature.v1',
        BrokerCapabilityBody,
        capability.body,
        OWN_KEYS.issuer,
      ),
      proof: again('chio.broker-request-proof-signature.v1', RequestProofBody, proof.body, OWN_KEYS.caller),
    }
  }
})

describe('a registration', () => {
  test('is refused with any member changed, under the authorization of the original', () => {
    const accepted = acceptedChanges(registration, changed =>
      shaped(() => {
        encode(AttemptRegistration, changed)
        verifyRegistrationAuthorization(authorized('register'), changed, registrationPins, NOW + 2)
      }),
    )
    expect(accepted).toEqual([])
  })

  test('is not the one of its request with any member changed, but for what the authority alone knows', () => {
    const accepted = acceptedChanges(registration, changed =>
      shaped(() => checkRegistrationOf(changed, execute)),
    )
    expect(accepted).toEqual([
      'authorityMetadataDigest',
      'ids.operationId',
      'quotas.0.maximumExecutions',
      'quotas.1.keyId',
      'quotas.1.maximumExecutions',
      'revocationAuthorityDomain',
    ])
  })

  test('is authorized for one action, one tenant, one authority and one moment', () => {
    const verify = (change: Partial<typeof registrationPins>, now = NOW + 2): unknown =>
      verifyRegistrationAuthorization(
        authorized('register'),
        registration,
        { ...registrationPins, ...change },
        now,
      )
    expect(() => verify({})).not.toThrow()
    expect(() => verify({ action: 'prepare' })).toThrow(/action refused/)
    expect(() => verify({ tenantScope: 'other' })).toThrow(/tenantScope refused/)
    expect(() => verify({ authority: OWN_KEYS.stranger.publicKey })).toThrow(/authority refused/)
    for (const skew of [-1, 0, 1]) expect(() => verify({}, NOW + 2 + skew)).not.toThrow()
    for (const skew of [-2, 2]) expect(() => verify({}, NOW + 2 + skew)).toThrow(/time refused/)
  })

  const registrationPins = {
    action: 'register' as 'prepare' | 'register' | 'release',
    tenantScope: TENANT,
    authority: OWN_KEYS.authority.publicKey,
    clockSkewSeconds: 1,
  }
})

describe('a prepare acknowledgement', () => {
  test('is refused with another attempt, operation or prepared dispatch', () => {
    const acknowledgement = {
      attemptId: registration.ids.attemptId,
      operationId: OPERATION_ID,
      preparedAtUnixSeconds: NOW + 2,
      preparedDispatchId: preparedDispatchId(registration),
      schema: 'chio.broker-prepare-dispatch-acknowledgement.v1' as const,
    }
    const accepted = acceptedChanges(acknowledgement, changed =>
      checkPrepareAcknowledgement(changed, registration),
    )
    // The time is judged by the client against its clock, the schema by the codec.
    expect(accepted).toEqual(['preparedAtUnixSeconds', 'schema'])
  })
})

describe('an execute response', () => {
  // Read back, so that the two places of its evidence are two objects.
  const original = decode(BrokerExecuteResponse, encode(BrokerExecuteResponse, response()), 'response')

  test('is accepted as it is', () => {
    expect(() => verifyResponseOf(original, context)).not.toThrow()
  })

  test('is refused with any member changed, the signature left as it was', () => {
    const accepted = acceptedChanges(original, changed => shaped(() => verifyResponseOf(changed, context)))
    expect(accepted).toEqual([])
  })

  test('is refused with any member changed and the receipt signed again, but for what the broker alone states', () => {
    const accepted = acceptedChanges(original, (changed, path) =>
      shaped(() => {
        const again = receiptSignedAgain(changed, path)
        encode(BrokerExecuteResponse, again)
        verifyResponseOf(again, context)
      }),
    )
    expect(accepted.filter(isNotMadeAnew).sort()).toEqual(
      [
        'receipt.body.evidence.authorityCommitIndex',
        'receipt.body.evidence.budgetCommitIndex',
        'receipt.body.evidence.leaderEpoch',
        'receipt.body.evidence.revocationCommitIndex',
        'receipt.body.evidence.revocationSetDigest',
        'receipt.body.issuedAtUnixSeconds',
        'receipt.body.receiptId',
      ].sort(),
    )
  })

  test('is refused under another signer', () => {
    const receiptSigner = OWN_KEYS.stranger.publicKey
    expect(() => verifyResponseOf(original, { ...context, receiptSigner })).toThrow(/signer refused/)
  })

  /** Evidence stands twice in a response; a change inside the receipt is carried to the other place. */
  function receiptSignedAgain(changed: BrokerExecuteResponse, path: Path): BrokerExecuteResponse {
    const domain = 'chio.broker-execution-receipt-signature.v2'
    const receipt = {
      ...again(domain, ExecutionReceiptBody, changed.receipt.body, OWN_KEYS.receipt),
      signer: changed.receipt.signer,
    }
    const evidence = path[0] === 'receipt' ? receipt.body.evidence : changed.evidence
    return { ...changed, evidence, receipt, receiptReference: referenceOf(changed, receipt, path) }
  }

  function referenceOf(
    changed: BrokerExecuteResponse,
    receipt: BrokerExecuteResponse['receipt'],
    path: Path,
  ): string {
    return path[0] === 'receiptReference' ? changed.receiptReference : receiptReference(receipt)
  }
})

describe('a failure', () => {
  test('is accepted as it is', () => {
    expect(() => verifyFailureOf(failure, context)).not.toThrow()
  })

  test('is refused with any member changed, the signature left as it was', () => {
    expect(
      acceptedChanges(failure, changed =>
        shaped(() => {
          encode(BrokerExecuteFailure, changed)
          verifyFailureOf(changed, context)
        }),
      ),
    ).toEqual([])
  })

  test('is refused with any member changed and signed again, but for what the broker alone states', () => {
    const accepted = acceptedChanges(failure, (changed, path) =>
      shaped(() => verifyFailureOf(failureSignedAgain(changed, path), context)),
    )
    expect(accepted.filter(isNotMadeAnew)).toEqual([
      'receipt.body.diagnosticCode',
      'receipt.body.issuedAtUnixSeconds',
    ])
  })

  function failureSignedAgain(changed: BrokerExecuteFailure, path: Path): BrokerExecuteFailure {
    const domain = 'chio.broker-execution-failure-receipt-signature.v1'
    const { body, signer } = changed.receipt
    const receipt = { ...again(domain, ExecutionFailureReceiptBody, body, OWN_KEYS.receipt), signer }
    const diagnosticCode = path[0] === 'receipt' ? body.diagnosticCode : changed.diagnosticCode
    const reference = path[0] === 'receiptReference' ? changed.receiptReference : failureReference(receipt)
    return { diagnosticCode, receipt, receiptReference: reference }
  }
})

/** Signs a changed body with the key that signs such documents. */
const again = signEnvelope

/** A document that cannot be written in its shape cannot be read in it either: that is a refusal. */
function shaped(judge: () => unknown): void {
  try {
    judge()
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    throw new BrokerError('invalid_request', 'document refused: expected its shape', { cause: error })
  }
}
