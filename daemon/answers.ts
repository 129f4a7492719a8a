// Owns the frames that go back: one answer an operation, and the execute answers, which are the same bytes on the
// prepared stream and on every replay because they are written from what is stored.
// Must never: contradict itself; the rules between the members are checked before a byte is written.
// Source: the broker protocol, section 2.3.
import { encode, encodeSliced } from '../protocol/codec.js'
import { checkResponse, IpcResponse } from '../protocol/envelope.js'
import { BrokerExecuteResponse } from '../protocol/execute-response.js'
import { BrokerExecuteFailure } from '../protocol/failure.js'
import { receiptReference, type SignedExecutionReceipt } from '../protocol/receipt.js'
import type { StoredResponse } from './stored-responses.js'
import { nextSlice } from './turn-of-loop.js'

export function encodeResponse(response: IpcResponse): Uint8Array {
  checkResponse(response, response.operation)
  return encode(IpcResponse, response)
}

export function acceptedFrame(operation: string, document: Uint8Array): Uint8Array {
  return encodeResponse({ accepted: true, errorCode: null, operation, response: document })
}

export function declinedFrame(operation: string, errorCode: string): Uint8Array {
  return encodeResponse({ accepted: false, errorCode, operation, response: new Uint8Array(0) })
}

export function failureFrame(failure: BrokerExecuteFailure): Uint8Array {
  const response = encode(BrokerExecuteFailure, failure)
  return encodeResponse({
    accepted: false,
    errorCode: failure.diagnosticCode,
    operation: 'execute',
    response,
  })
}

/** The frame of a completed execution; large ones in slices, so that control operations are answered meanwhile. */
export async function completedFrame(
  { body, headers, status }: StoredResponse,
  receipt: SignedExecutionReceipt,
  yieldNow: () => Promise<void> = nextSlice,
): Promise<Uint8Array> {
  const document = {
    body,
    evidence: receipt.body.evidence,
    headers,
    receipt,
    receiptReference: receiptReference(receipt),
    status,
  }
  const response = await encodeSliced(BrokerExecuteResponse, document, yieldNow)
  const envelope: IpcResponse = { accepted: true, errorCode: null, operation: 'execute', response }
  checkResponse(envelope, 'execute')
  return encodeSliced(IpcResponse, envelope, yieldNow)
}
