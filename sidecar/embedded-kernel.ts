// Owns the caller kernel that a serving kernel is: its answers become replies, or the one failure of their route.
// Must never: turn a refusal of the original operation into a denial, which says that a live start was judged; or let a
// reply carry what no guard has passed.
// Source: the facts of the caller routes: denied starts are 403 with a receipt, revoked capabilities and everything that
// the original operation refuses are the one 409.
import type { RunningKernel } from '../kernel/start-kernel.js'
import {
  CALLER_PROTOCOL,
  type EvaluateReply,
  type ReportReply,
  type StartReply,
} from '../protocol/caller-http.js'
import { BrokerError } from '../protocol/errors.js'
import type { CallAnswer, ReportAnswer, StartAnswer } from '../protocol/tool-call-rpc.js'
import type { CallerKernel } from './caller-kernel.js'

/** The caller routes of a kernel that this process serves. */
export function callerKernelOf({
  callerDelivery,
  kernel: { calls },
}: Pick<RunningKernel, 'callerDelivery' | 'kernel'>): CallerKernel {
  return {
    foundations: {
      // The embedded store has budgets and operations in one commit.
      budgetAuthority: true,
      durableAdmission: callerDelivery.isDurable,
      pinnedExecutor: callerDelivery.executor !== null,
    },
    // A capability is its subject's: who presents it over HTTP is known by nothing else.
    evaluate: async (agent, request) =>
      evaluateReplyOf(
        await calls.reserveCall({ callerPublicKey: agent, uid: process.geteuid?.() ?? 0 }, request),
      ),
    start: async ({ arguments: args, credentials = {}, execution_nonce: executionNonce }) =>
      startReplyOf(await calls.start(null, { arguments: args, context: null, credentials, executionNonce })),
    report: async ({ authorization, report }) =>
      reportReplyOf(await calls.reconcile(null, { authorization, report })),
  }
}

function evaluateReplyOf(answer: CallAnswer): EvaluateReply {
  const { executionNonce, state, verdict } = answer
  const receipt = receiptOf(answer)
  if (verdict === 'deny') return { execution_authorized: false, receipt, status: 'deny' }
  if (state !== 'ready_to_dispatch' || executionNonce === null) throw refused(answer)
  return {
    execution_authorized: false,
    execution_nonce: executionNonce,
    receipt,
    start_required: true,
    status: 'reserved',
  }
}

function startReplyOf(answer: StartAnswer): StartReply {
  const { authorization, verdict } = answer
  if (authorization !== null)
    return { authorization, protocol: CALLER_PROTOCOL, status: 'dispatch_committed' }
  if (verdict === 'allow' || isOfOriginal(answer)) throw refused(answer)
  return { protocol: CALLER_PROTOCOL, receipt: receiptOf(answer), status: 'deny' }
}

function reportReplyOf(answer: ReportAnswer): ReportReply {
  const { check, output, state, verdict } = answer
  const isReconciled = verdict === 'allow' && state === 'completed' && output !== null
  const isDenied = verdict === 'deny' && check === 'output'
  if (!isReconciled && !isDenied) throw refused(answer)
  return {
    execution_authorized: false,
    output: isReconciled ? output.value : null,
    protocol: CALLER_PROTOCOL,
    receipt: receiptOf(answer),
    status: isReconciled ? 'reconciled' : 'deny',
  }
}

/** What the operation itself refuses, and what was taken from it since: neither says that a start was judged. */
function isOfOriginal({ check, code }: CallAnswer): boolean {
  return check === 'admission' || code === 'capability_revoked'
}

function receiptOf(answer: CallAnswer) {
  const { receipt } = answer
  if (receipt === null) throw refused(answer)
  return receipt
}

/** For the log alone: every client gets the fixed body. */
function refused({ code, operationId, reason, state }: CallAnswer): BrokerError {
  return new BrokerError(
    'conflict',
    `caller delivery refused: expected an answer of its route, got ${code ?? state ?? 'none'}: ${reason ?? 'no reason'}`,
    { operationId: operationId ?? undefined },
  )
}
