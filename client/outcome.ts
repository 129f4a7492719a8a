// The outcome of one request, taken from the broker and verified against what the caller itself
// retained. The tool is never asked: it may lie or have died.
import { decode } from '../protocol/codec.js'
import type { IpcResponse } from '../protocol/envelope.js'
import {
  BrokerExecuteResponse,
  type OutcomeContext,
  verifyFailureOf,
  verifyResponseOf,
} from '../protocol/execute-response.js'
import { BrokerExecuteFailure } from '../protocol/failure.js'
import type { Verified } from '../protocol/verified.js'
import type { BrokerClient } from './broker-client.js'

/** What the broker's record says of a request. `pending` and `unknown` are about the attempt, not the effect. */
export type RecordedOutcome =
  | {
      readonly kind: 'response'
      readonly response: Verified<BrokerExecuteResponse>
      readonly frame: Uint8Array
    }
  | { readonly kind: 'failure'; readonly failure: Verified<BrokerExecuteFailure>; readonly frame: Uint8Array }
  | { readonly kind: 'attempt_pending' }
  | { readonly kind: 'attempt_unknown' }

/** Reads and verifies the recorded outcome. @param budgetMs covers the wait for a held or executing attempt. */
export async function readOutcome(
  broker: BrokerClient,
  context: OutcomeContext,
  budgetMs: number,
): Promise<RecordedOutcome> {
  const { response, frame } = await broker.replayResponse(context.request, budgetMs)
  return verifyOutcome(response, frame, context)
}

/** Verifies one execute response envelope, whoever carried it. */
export function verifyOutcome(
  response: IpcResponse,
  frame: Uint8Array,
  context: OutcomeContext,
): RecordedOutcome {
  if (response.accepted) {
    const document = decode(BrokerExecuteResponse, response.response, 'execute response')
    return { kind: 'response', response: verifyResponseOf(document, context), frame }
  }
  if (response.errorCode === 'attempt_pending' || response.errorCode === 'attempt_unknown') {
    return { kind: response.errorCode }
  }
  const document = decode(BrokerExecuteFailure, response.response, 'execute failure')
  return { kind: 'failure', failure: verifyFailureOf(document, context), frame }
}
