// Owns: getting what was delivered to where it is judged: from the broker's record, where guards are configured.
// Must never: end an operation unjudged because the output could not be had: then it waits.
// Source: the broker's replay, which never dispatches; the bindings of the execute response.
import { isSameDocument } from '../../protocol/codec.js'
import { BrokerError } from '../../protocol/errors.js'
import { type BrokerExecuteResponse, verifyResponseOf } from '../../protocol/execute-response.js'
import type { BrokerRecord } from '../../protocol/kernel-rpc.js'
import { DEFAULT_IPC_DEADLINE_MS } from '../../protocol/limits.js'
import { SignedExecutionReceipt } from '../../protocol/receipt.js'
import { deadlineAfter } from '../../system/deadline.js'
import type { RetainedAttempt } from '../settling/broker-records.js'
import type { KernelContext } from '../kernel-context.js'
import { judgeOutput, type OutputJudgement } from './output-guards.js'

/** @throws BrokerError `output_unavailable`, after which the settlement tries again. */
export async function judgeDelivered(
  context: KernelContext,
  attempt: RetainedAttempt,
  record: BrokerRecord,
): Promise<OutputJudgement | undefined> {
  const { clock, config, guards, records } = context
  if (guards.length === 0 || record.kind !== 'receipt') return undefined
  const output = await records.output(attempt, deadlineAfter(clock, DEFAULT_IPC_DEADLINE_MS))
  if (typeof output === 'string') return unavailable(output)
  const verified = verifyResponseOf(output, { ...attempt, receiptSigner: config.broker.receiptKey })
  if (!isOutputOf(verified, record.receipt)) return unavailable('that of another receipt')
  return judgeOutput(guards, verified)
}

function isOutputOf({ receipt }: BrokerExecuteResponse, ours: SignedExecutionReceipt): boolean {
  return isSameDocument(SignedExecutionReceipt, receipt, ours)
}

function unavailable(got: string): never {
  throw new BrokerError(
    'output_unavailable',
    `record refused: expected the delivered output from the broker, for its guards, got ${got}; it is ended once the broker gives it`,
    // The provider acted, and what came of it is not judged yet: nobody may take it for nothing.
    { outcome: 'unknown' },
  )
}
