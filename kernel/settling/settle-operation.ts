// Owns: settling one operation that nobody ended: the broker is asked, and its record decides.
// Must never: make an operation terminal while the broker cannot be reached, or start or prepare anything.
// Source: the kernel's settling rules; "nothing uncertain is ever retried".
import { isBeforeDispatch, isTerminalState } from '../../protocol/admission-states.js'
import { isBrokerError } from '../../protocol/errors.js'
import type { BrokerRecord } from '../../protocol/kernel-rpc.js'
import { DEFAULT_IPC_DEADLINE_MS } from '../../protocol/limits.js'
import type { AttemptStatus } from '../../protocol/status.js'
import { signAction } from '../authorize-registration.js'
import type { RetainedAttempt, Unanswered } from './broker-records.js'
import { Deliveries } from '../delivery/deliveries.js'
import { deadlineAfter } from '../../system/deadline.js'
import { faultFields } from '../fault-fields.js'
import { finalize, retainedAttempt } from './finalize.js'
import type { KernelContext } from '../kernel-context.js'
import type { AdmissionOperation } from '../operation/operation.js'
import { heldForMs } from './settlement-deadline.js'

export type WaitReason =
  | 'attempt_held'
  | 'attempt_pending'
  | 'broker_unreachable'
  | 'record_refused'
  | 'release_refused'
export type Settled =
  | { readonly kind: 'settled' }
  | { readonly kind: 'again'; readonly reason: WaitReason; readonly afterMs?: number }

const SETTLED: Settled = { kind: 'settled' }

function again(reason: WaitReason): Settled {
  return { kind: 'again', reason }
}

/** One look at one operation. */
export async function settleOperation(context: KernelContext, operationId: string): Promise<Settled> {
  const operation = await context.store.findOperation(operationId)
  if (operation === undefined || isTerminalState(operation.state)) return SETTLED
  if (operation.call.kind === 'announced' || operation.call.kind === 'announced_call')
    return compensate(context, operation, 'not approved, or not asked for again, by the deadline')
  if (operation.call.kind === 'tool_call') return settleToolCall(context, operation)
  const attempt = await retainedAttempt(context, operation)
  // Without a retained request nothing was ever signed: the broker cannot know of it.
  if (attempt === undefined) return compensate(context, operation, 'nonce expired before the registration')
  const status = await ask(context, 'attempt_status', deadline =>
    context.records.attemptStatus(attempt.registration.ids.attemptId, deadline),
  )
  if (status === 'unreachable' || status === 'refused') return again(WAITS_FOR[status])
  if (status === 'unknown') return settleUnregistered(context, operation)
  if (status.held) return stillHeld(context, operation, status)
  return isBeforeDispatch(operation.state)
    ? settleUnstarted(context, operation, attempt)
    : settleStarted(context, operation, attempt)
}

/**
 * Before its start nobody else knows of it. A captured one is authorized, a reported one ended; in between it waits for
 * its executor, who alone knows what happened.
 */
async function settleToolCall(context: KernelContext, operation: AdmissionOperation): Promise<Settled> {
  const { state } = operation
  if (isBeforeDispatch(state)) return compensate(context, operation, 'nonce expired before the start')
  const deliveries = new Deliveries(context)
  if (state === 'dispatch_committed') await deliveries.authorize(operation)
  if (state === 'finalizing') await deliveries.finish(operation)
  return SETTLED
}

/** Not started: the attempt is released, so that the broker forgets it, and the hold is given back. */
async function settleUnstarted(
  context: KernelContext,
  operation: AdmissionOperation,
  attempt: RetainedAttempt,
): Promise<Settled> {
  const released = await release(context, attempt)
  if (released === 'unreachable') return again('broker_unreachable')
  if (released === 'released' || released === 'unknown') {
    return compensate(context, operation, 'nonce expired before the start')
  }
  return endByRecord(context, operation, { attempt, released })
}

/** Started: the broker's record ends it. An attempt that never went further is released first. */
async function settleStarted(
  context: KernelContext,
  operation: AdmissionOperation,
  attempt: RetainedAttempt,
): Promise<Settled> {
  const first = await replay(context, attempt)
  if (isRecord(first)) return endBy(context, operation, first)
  if (first === 'unknown') return settleUnregistered(context, operation)
  if (first !== 'pending') return again(WAITS_FOR[first])
  const released = await release(context, attempt)
  if (released === 'unreachable') return again('broker_unreachable')
  return endByRecord(context, operation, { attempt, released })
}

/** What is waited for when no record came: what was answered in its place says why. */
const WAITS_FOR = {
  pending: 'attempt_pending',
  refused: 'record_refused',
  unknown: 'attempt_pending',
  unreachable: 'broker_unreachable',
} as const

/** The record decides. Without one, a release that the broker refused is what is in the way. */
async function endByRecord(
  context: KernelContext,
  operation: AdmissionOperation,
  { attempt, released }: { attempt: RetainedAttempt; released: string },
): Promise<Settled> {
  const outcome = await replay(context, attempt)
  if (isRecord(outcome)) return endBy(context, operation, outcome)
  const isInTheWay = released === 'refused' && outcome === 'pending'
  return again(isInTheWay ? 'release_refused' : WAITS_FOR[outcome])
}

/**
 * The broker holds no such attempt. It writes the registered row before it prepares, and dispatches nothing that
 * was not prepared: without a row nothing was sent. Nor can anything be later: the end that is committed here
 * makes the authority answer every question about this hold with a refusal.
 */
async function settleUnregistered(context: KernelContext, operation: AdmissionOperation): Promise<Settled> {
  const { operationId, state } = operation
  if (isBeforeDispatch(state)) return compensate(context, operation, 'never registered at the broker')
  await context.store.settleNotAccepted({ operationId, cause: 'never registered at the broker' })
  return SETTLED
}

async function compensate(
  context: KernelContext,
  operation: AdmissionOperation,
  cause: string,
): Promise<Settled> {
  await context.store.compensate({ cause, operationId: operation.operationId })
  return SETTLED
}

async function endBy(
  context: KernelContext,
  operation: AdmissionOperation,
  record: BrokerRecord,
): Promise<Settled> {
  try {
    await finalize(context, operation, record)
    return SETTLED
  } catch (error) {
    if (isBrokerError(error) && error.code === 'output_unavailable') return again('broker_unreachable')
    if (
      !isBrokerError(error) ||
      !['authorization_denied', 'conflict', 'invalid_request'].includes(error.code)
    ) {
      throw error
    }
    const { operationId } = operation
    context.log({ level: 'error', event: 'record_refused', operationId, ...faultFields(error) })
    return again('record_refused')
  }
}

function stillHeld(context: KernelContext, operation: AdmissionOperation, status: AttemptStatus): Settled {
  const afterMs = heldForMs(operation, status, context.clock.unixMs())
  return { kind: 'again', reason: 'attempt_held', afterMs }
}

function replay(context: KernelContext, attempt: RetainedAttempt) {
  return ask(context, 'replay', deadline => context.records.replay(attempt, deadline))
}

/** Signs and sends the release of an attempt. */
export function release(context: KernelContext, attempt: RetainedAttempt) {
  const authorization = signAction(context, attempt.registration, 'release')
  return ask(context, 'release', deadline => context.records.release(attempt, authorization, deadline))
}

/** Whatever went wrong on the way, nothing was learned. */
async function ask<T>(
  context: KernelContext,
  what: 'attempt_status' | 'release' | 'replay',
  question: (deadlineBootNs: bigint) => Promise<T>,
): Promise<T | 'unreachable'> {
  try {
    const answer = question(deadlineAfter(context.clock, DEFAULT_IPC_DEADLINE_MS))
    context.atCutpoint(`${what}.asked`)
    const told = await answer
    context.atCutpoint(`${what}.told`)
    return told
  } catch (error) {
    context.log({ level: 'warn', event: 'broker_unanswered', ...faultFields(error) })
    return 'unreachable'
  }
}

function isRecord(outcome: BrokerRecord | 'pending' | Unanswered): outcome is BrokerRecord {
  return typeof outcome === 'object'
}
