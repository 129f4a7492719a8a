// An outcome is accepted only when every binding of it is the one of the request and registration that the host
// retained itself. Each binding is changed alone and signed again by the right key.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { verifyOutcome } from '../../client/outcome.js'
import { systemClock } from '../../native/clock.js'
import { decode, encode } from '../../protocol/codec.js'
import type { IpcResponse } from '../../protocol/envelope.js'
import {
  BrokerExecuteResponse,
  BrokerExecuteResponseV1,
  type OutcomeContext,
} from '../../protocol/execute-response.js'
import { responseBodyDigest, responseHeadersDigest } from '../../protocol/evidence.js'
import { callerOptionsDigest } from '../../protocol/execute-request.js'
import { BrokerExecuteFailure, signFailure } from '../../protocol/failure.js'
import type { ExecutionFailureReceiptBody } from '../../protocol/failure.js'
import { type ExecutionReceiptBody, receiptReference, signReceipt } from '../../protocol/receipt.js'
import { type BrokerWorld, startWorld } from '../support/broker-world.js'
import { codeOf } from '../support/descriptors.js'
import type { TestAttempt } from '../support/test-attempt.js'

let world: BrokerWorld
let context: OutcomeContext
let response: BrokerExecuteResponse
let failedContext: OutcomeContext
let failure: BrokerExecuteFailure

beforeAll(async () => {
  world = await startWorld()
  const attempt = await world.prepared()
  const answered = await attempt.preparation.stream.submit(systemClock.bootNs() + 5_000_000_000n)
  context = contextOf(attempt)
  response = decode(BrokerExecuteResponse, answered.response.response, 'response')
  const released = await world.prepared()
  released.preparation.stream.close()
  failedContext = contextOf(released)
  failure = decode(BrokerExecuteFailure, (await released.replay()).response.response, 'failure')
})
afterAll(() => world.close())

const contextOf = ({ request, registration }: TestAttempt): OutcomeContext => ({
  request,
  registration,
  receiptSigner: world.receiptKey.publicKey,
})

const OTHER_DIGEST = 'e'.repeat(64)
const NO_FRAME = new Uint8Array(0)

function accepted(document: Uint8Array): IpcResponse {
  return { accepted: true, errorCode: null, operation: 'execute', response: document }
}

/** What verifying says: nothing when it accepts. */
function refusalOf(answer: BrokerExecuteResponse, against = context): string | undefined {
  return sentenceOf(() => verifyOutcome(accepted(encode(BrokerExecuteResponse, answer)), NO_FRAME, against))
}

function sentenceOf(verify: () => unknown): string | undefined {
  try {
    verify()
    return undefined
  } catch (error) {
    return (error as Error).message
  }
}

/** The same response with a receipt that says something else, signed by the broker's own key. */
function signedAnew(change: (body: ExecutionReceiptBody) => ExecutionReceiptBody): BrokerExecuteResponse {
  const body = change(structuredClone(response.receipt.body))
  const receipt = signReceipt(body, world.receiptKey)
  return { ...response, evidence: body.evidence, receipt, receiptReference: receiptReference(receipt) }
}

type Bindings = Record<string, (body: ExecutionReceiptBody) => ExecutionReceiptBody>

const evidence =
  (change: Partial<ExecutionReceiptBody['evidence']>) =>
  (body: ExecutionReceiptBody): ExecutionReceiptBody => ({
    ...body,
    evidence: { ...body.evidence, ...change },
  })
const member =
  (change: Partial<ExecutionReceiptBody>) =>
  (body: ExecutionReceiptBody): ExecutionReceiptBody => ({ ...body, ...change })

/** Each binding with the smallest lie about it. */
const BINDINGS: Bindings = {
  attemptId: evidence({ attemptId: 'broker-attempt-of-another' }),
  holdId: evidence({ holdId: 'broker-hold-of-another' }),
  invocationId: evidence({ invocationId: 'invocation-of-another' }),
  requestDigest: evidence({ requestDigest: OTHER_DIGEST }),
  capabilityDigest: evidence({ capabilityDigest: OTHER_DIGEST }),
  operationId: member({ operationId: OTHER_DIGEST }),
  authorizeEventId: member({ authorizeEventId: 'broker-authorize-of-another' }),
  captureEventId: member({ captureEventId: 'broker-capture-of-another' }),
  parentCapabilityId: member({ parentCapabilityId: 'grant-of-another' }),
  brokerCapabilityId: member({ brokerCapabilityId: 'capability-of-another' }),
  brokerQuotaKeyId: member({ brokerQuotaKeyId: 'capability-of-another' }),
  subject: body => ({ ...body, subject: world.keys.admin.publicKey }),
  credential: member({ credentialReferenceHash: OTHER_DIGEST }),
  credentialVersion: body => ({ ...body, credentialVersion: body.credentialVersion + 1 }),
  destination: body => ({
    ...body,
    normalizedDestination: { ...body.normalizedDestination, exactPathAndQuery: '/issues/1' },
  }),
  callerHeadersSha256: member({ callerHeadersSha256: OTHER_DIGEST }),
  callerOptionsSha256: member({ callerOptionsSha256: OTHER_DIGEST }),
  requestBodySha256: member({ requestBodySha256: OTHER_DIGEST }),
  requestBodyBytes: body => ({ ...body, requestBodyBytes: body.requestBodyBytes + 1 }),
  providerAdapterId: member({ providerAdapterId: 'https' }),
  providerAdapterVersion: body => ({ ...body, providerAdapterVersion: body.providerAdapterVersion + 1 }),
  quotas: body => ({ ...body, quotas: body.quotas.slice(0, 1) }),
  'body length': body => ({ ...body, responseBodyBytes: body.responseBodyBytes + 1 }),
  'body digest': evidence({ responseBodySha256: OTHER_DIGEST }),
  'headers digest': evidence({ responseHeadersSha256: OTHER_DIGEST }),
  status: body => ({
    ...body,
    evidence: { ...body.evidence, upstreamStatus: body.evidence.upstreamStatus + 1 },
  }),
}

describe('a response', () => {
  test('that the broker signed for this request is accepted', () => {
    expect(refusalOf(response)).toBeUndefined()
    expect(refusalOf(signedAnew(body => body))).toBeUndefined()
  })

  test.each(Object.entries(BINDINGS))(
    'whose %s alone is another is refused by name, though rightly signed',
    (name, change) => {
      expect(refusalOf(signedAnew(change))).toMatch(new RegExp(`^outcome ${name} refused`))
    },
  )

  test('of another request of the same grant and caller is refused', () => {
    expect(refusalOf(response, { ...failedContext })).toMatch(/^outcome attemptId refused/)
  })

  test('signed by another key, or changed after it was signed, is refused', () => {
    const forged = signReceipt(response.receipt.body, world.keys.authority)
    expect(refusalOf({ ...response, receipt: forged, receiptReference: receiptReference(forged) })).toMatch(
      /^receipt signer refused/,
    )
    const posing = { ...forged, signer: response.receipt.signer }
    expect(refusalOf({ ...response, receipt: posing, receiptReference: receiptReference(posing) })).toMatch(
      /^receipt signature refused/,
    )
  })

  test('whose envelope says more or less than its receipt is refused by name', () => {
    const [first] = response.headers
    if (first === undefined) throw new Error('the provider sent no header')
    const lies: [string, BrokerExecuteResponse][] = [
      ['receiptReference', { ...response, receiptReference: `broker-receipt-sha256-${OTHER_DIGEST}` }],
      ['evidence', { ...response, evidence: { ...response.evidence, leaderEpoch: 9 } }],
      ['status', { ...response, status: response.status + 1 }],
      ['body length', { ...response, body: Buffer.concat([response.body, Buffer.from('!')]) }],
      ['body digest', { ...response, body: response.body.map(byte => byte ^ 1) }],
      ['headers digest', { ...response, headers: [{ ...first, value: Buffer.from('text/html') }] }],
    ]
    for (const [name, lie] of lies) expect(refusalOf(lie)).toMatch(new RegExp(`^outcome ${name} refused`))
  })

  test('longer than the caller asked for is refused', () => {
    const { request } = context.request
    const options = { ...request.options, responseLimitBytes: 1 }
    const narrow = { ...context, request: { ...context.request, request: { ...request, options } } }
    const overNarrow = signedAnew(member({ callerOptionsSha256: callerOptionsDigest(options) }))
    expect(refusalOf(overNarrow, narrow)).toMatch(/^outcome body length refused/)
  })

  test('of the first version is never accepted as an outcome', async () => {
    const { responseHeadersSha256: _unknownThen, ...shared } = response.evidence
    const old = { ...shared, schema: 'chio.broker-execution-evidence.v1' as const }
    const body = {
      ...response.receipt.body,
      evidence: old,
      schema: 'chio.broker-execution-receipt.v1' as const,
    }
    const historical = { ...response, evidence: old, receipt: { ...response.receipt, body } }
    const bytes = encode(BrokerExecuteResponseV1, historical)
    expect(await codeOf(() => verifyOutcome(accepted(bytes), NO_FRAME, context))).toBe('invalid_request')
  })

  test('with a body and headers that were replaced together with their digests is refused by signature', () => {
    const body = Buffer.from('replaced')
    const changed = {
      ...response.receipt.body,
      responseBodyBytes: body.length,
      evidence: {
        ...response.evidence,
        responseBodySha256: responseBodyDigest(body),
        responseHeadersSha256: responseHeadersDigest([]),
      },
    }
    const receipt = { ...response.receipt, body: changed }
    const lie = { ...response, body, headers: [], evidence: changed.evidence, receipt }
    expect(refusalOf({ ...lie, receiptReference: receiptReference(receipt) })).toMatch(
      /^receipt signature refused/,
    )
  })
})

function failureRefusal(document: BrokerExecuteFailure): string | undefined {
  const answer: IpcResponse = {
    accepted: false,
    errorCode: document.diagnosticCode,
    operation: 'execute',
    response: encode(BrokerExecuteFailure, document),
  }
  return sentenceOf(() => verifyOutcome(answer, NO_FRAME, failedContext))
}

const failureAnew = (change: Partial<ExecutionFailureReceiptBody>): BrokerExecuteFailure =>
  signFailure({ ...failure.receipt.body, ...change }, world.receiptKey)

describe('a failure', () => {
  test('that the broker signed for this request is accepted', () => {
    expect(failureRefusal(failure)).toBeUndefined()
    expect(failureRefusal(failureAnew({}))).toBeUndefined()
  })

  test.each<[string, Partial<ExecutionFailureReceiptBody>]>([
    ['attemptId', { attemptId: 'broker-attempt-of-another' }],
    ['holdId', { holdId: 'broker-hold-of-another' }],
    ['invocationId', { invocationId: 'invocation-of-another' }],
    ['brokerCapabilityId', { brokerCapabilityId: 'capability-of-another' }],
    ['parentCapabilityId', { parentCapabilityId: 'grant-of-another' }],
    ['capabilityDigest', { capabilityDigest: OTHER_DIGEST }],
    ['requestDigest', { requestDigest: OTHER_DIGEST }],
    ['receiptId', { receiptId: `broker-failure-terminal-${OTHER_DIGEST}` }],
  ])('whose %s alone is another is refused by name, though rightly signed', (name, change) => {
    expect(failureRefusal(failureAnew(change))).toMatch(new RegExp(`^outcome ${name} refused`))
  })

  test('of no attempt at all is not the end of this one', () => {
    const unbound = {
      attemptId: null,
      brokerCapabilityId: null,
      holdId: null,
      invocationId: null,
      parentCapabilityId: null,
    }
    expect(failureRefusal(failureAnew(unbound))).toMatch(/^outcome attemptId refused/)
  })

  test('signed by another key, or changed after it was signed, is refused', () => {
    const forged = signFailure(failure.receipt.body, world.keys.authority)
    expect(failureRefusal(forged)).toMatch(/^failure receipt signer refused/)
    const receipt = {
      ...failure.receipt,
      body: { ...failure.receipt.body, issuedAtUnixSeconds: failure.receipt.body.issuedAtUnixSeconds + 1 },
    }
    expect(failureRefusal({ ...failure, receipt })).toMatch(/^failure receipt receiptReference refused/)
  })
})
