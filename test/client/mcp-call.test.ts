// The call on descriptor 8: the exact frame goes out, and only a response that verifies against the pinned key and the
// original request comes back. The peer's answer waits in the stream before the call, which blocks.
import { describe, expect, test } from 'vitest'
import { assertSocket, callBroker } from '../../client/mcp-call.js'
import {
  closeDescriptor,
  pipe,
  readFrame,
  shutdownWrite,
  socketPair,
  writeFully,
} from '../../native/index.js'
import { executeFrameBody } from '../../protocol/attempt-request.js'
import { encode } from '../../protocol/codec.js'
import { BrokerExecuteResponse } from '../../protocol/execute-response.js'
import {
  BrokerExecuteFailure,
  type ExecutionFailureReceiptBody,
  signFailure,
} from '../../protocol/failure.js'
import { encodeFrame } from '../../protocol/frame.js'
import type { SigningKey } from '../../protocol/keys.js'
import { type ExecutionReceiptBody, receiptReference, signReceipt } from '../../protocol/receipt.js'
import { acceptedFrame, failedFrame } from '../support/broker-mcp.js'
import { codeOf, deadlineIn } from '../support/descriptors.js'
import { failure, response } from '../support/own-outcome.js'
import { execute, OWN_KEYS, TENANT } from '../support/own-request.js'

const document = encode(BrokerExecuteResponse, response())
const success = acceptedFrame(document)

/** One call against an answer that is there already. */
async function callAgainst(reply: Uint8Array) {
  const [peer, descriptor] = socketPair('stream')
  try {
    await writeFully(peer, reply, deadlineIn(10_000))
    shutdownWrite(peer)
    const receiptSigner = OWN_KEYS.receipt.publicKey
    let answer: Uint8Array | undefined
    const code = await codeOf(() => {
      answer = callBroker(execute, { descriptor, tenantScope: TENANT, receiptSigner })
    })
    const submitted = await readFrame(peer, {
      maximumFrameBytes: 1 << 23,
      deadlineBootNs: deadlineIn(10_000),
    })
    return { answer, code, submitted }
  } finally {
    closeDescriptor(peer)
    closeDescriptor(descriptor)
  }
}

function responseWith(
  changes: Partial<ExecutionReceiptBody>,
  key: SigningKey = OWN_KEYS.receipt,
): Uint8Array {
  const { receipt } = response()
  const signed = signReceipt({ ...receipt.body, ...changes }, key)
  const changed = { ...response(), receipt: signed, receiptReference: receiptReference(signed) }
  return acceptedFrame(encode(BrokerExecuteResponse, { ...changed, evidence: signed.body.evidence }))
}

function failureWith(changes: Partial<ExecutionFailureReceiptBody>, key = OWN_KEYS.receipt): Uint8Array {
  return failedFrame(signFailure({ ...failure.receipt.body, ...changes }, key))
}

const { evidence } = response()
const OTHER = 'e'.repeat(64)

describe('a call', () => {
  test('submits the exact frame and returns the very bytes of a verified response', async () => {
    const { answer, code, submitted } = await callAgainst(success)
    expect(code).toBeUndefined()
    expect(Buffer.from(submitted ?? [])).toEqual(Buffer.from(executeFrameBody(execute, TENANT)))
    expect(Buffer.from(answer ?? [])).toEqual(Buffer.from(document))
  })

  test('takes a verified failure for a denial', async () => {
    const { code, submitted } = await callAgainst(failedFrame(failure))
    expect(code).toBe('authorization_denied')
    expect(submitted).not.toBeNull()
  })

  test.each<[string, Uint8Array, string]>([
    ['another signer', responseWith({}, OWN_KEYS.stranger), 'authorization_denied'],
    ['another attempt', responseWith({ evidence: { ...evidence, attemptId: 'x' } }), 'authorization_denied'],
    ['another hold', responseWith({ evidence: { ...evidence, holdId: 'x' } }), 'authorization_denied'],
    ['another capture', responseWith({ captureEventId: 'x' }), 'authorization_denied'],
    [
      'another invocation',
      responseWith({ evidence: { ...evidence, invocationId: 'x' } }),
      'authorization_denied',
    ],
    [
      'another request',
      responseWith({ evidence: { ...evidence, requestDigest: OTHER } }),
      'authorization_denied',
    ],
    ['another body', responseWith({ requestBodySha256: OTHER }), 'authorization_denied'],
    ['another credential', responseWith({ credentialVersion: 9 }), 'authorization_denied'],
    [
      'a status that nobody signed',
      acceptedFrame(encode(BrokerExecuteResponse, { ...response(), status: 200 })),
      'authorization_denied',
    ],
    [
      'a body that nobody signed',
      acceptedFrame(encode(BrokerExecuteResponse, { ...response(), body: Buffer.from('{"number":42}') })),
      'authorization_denied',
    ],
    ['a failure of another signer', failureWith({}, OWN_KEYS.stranger), 'authorization_denied'],
    ['a failure of another request', failureWith({ requestDigest: OTHER }), 'authorization_denied'],
    [
      'a failure in the place of a response',
      acceptedFrame(encode(BrokerExecuteFailure, failure)),
      'invalid_request',
    ],
    ['nothing', new Uint8Array(0), 'outcome_undetermined'],
    ['half a length', success.subarray(0, 2), 'outcome_undetermined'],
    ['a length alone', success.subarray(0, 4), 'outcome_undetermined'],
    ['one byte less', success.subarray(0, -1), 'outcome_undetermined'],
    ['a length over the bound', Uint8Array.of(0x02, 0, 0, 1), 'invalid_request'],
    ['no document', encodeFrame(Buffer.from('{}')), 'invalid_request'],
  ])('refuses %s', async (_what, reply, code) => {
    const called = await callAgainst(reply)
    expect(called).toMatchObject({ answer: undefined, code })
  })

  test('reads the answer of a broker that has closed before it was written to', async () => {
    const [peer, descriptor] = socketPair('stream')
    await writeFully(peer, failedFrame(failure), deadlineIn(10_000))
    closeDescriptor(peer)
    const pins = { descriptor, tenantScope: TENANT, receiptSigner: OWN_KEYS.receipt.publicKey }
    expect(await codeOf(() => callBroker(execute, pins))).toBe('authorization_denied')
    closeDescriptor(descriptor)
  })
})

test('only a socket is taken for the stream', async () => {
  const [reading, writing] = pipe()
  const [one, other] = socketPair('stream')
  expect(await codeOf(() => assertSocket(one))).toBeUndefined()
  expect(await codeOf(() => assertSocket(reading))).toBe('custody')
  for (const fd of [reading, writing, one, other]) closeDescriptor(fd)
  expect(await codeOf(() => assertSocket(one))).toBe('custody')
})
