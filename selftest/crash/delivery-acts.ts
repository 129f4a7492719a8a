// Owns the rows about a call that an executor carries out: its start, which captures and then signs, and the report that
// ends it. What is asked again has to be answered with the same bytes, and the budget is captured once.
// Must never: take an answer for a record, or sign with a key of anything but a crash run.
import { randomUUID } from 'node:crypto'
import {
  type CallerAuthorization,
  type CallerExecutor,
  callerAuthorizationDigest,
  canonicalAuthorization,
} from '../../protocol/caller-authorization.js'
import { type CallerReport, signCallerReport } from '../../protocol/caller-report.js'
import { encode } from '../../protocol/codec.js'
import { KernelReceipt } from '../../protocol/kernel-receipt.js'
import { signingKey } from '../../protocol/keys.js'
import { KEY_BYTES } from '../../protocol/limits.js'
import type { ToolCallRequest } from '../../protocol/tool-call.js'
import type { CallAnswer, ReportAnswer, StartAnswer } from '../../protocol/tool-call-rpc.js'
import type { CrashWorld } from './crash-world.js'

/** Known to everybody, and pinned by a steered kernel alone. */
const EXECUTOR_KEY = signingKey(new Uint8Array(KEY_BYTES).fill(7))
export const CRASH_EXECUTOR: CallerExecutor = {
  executor_id: 'crash-executor',
  key_epoch: 1,
  public_key: EXECUTOR_KEY.publicKey,
}

const BEFORE_START = ['prepared', 'ready_to_dispatch']
const BEFORE_REPORT = [...BEFORE_START, 'dispatch_committed', 'awaiting_caller_report']
const ENDED_WITHIN_MS = 30_000

/** A call that was made ready. */
export interface ReadyCall {
  readonly request: ToolCallRequest
  readonly ready: CallAnswer
}

export interface DeliveryActs {
  readonly ask: () => Promise<unknown>
  readonly isDone: () => Promise<boolean>
}

/** What is asked at a row of a start. */
export function startActs(world: CrashWorld, call: ReadyCall): DeliveryActs {
  return {
    ask: () => authorized(world, call),
    async isDone() {
      const { state } = await viewOf(world, call)
      const [one, other] = [await authorized(world, call), await authorized(world, call)]
      assertSame('authorization', canonicalAuthorization(one), canonicalAuthorization(other))
      await assertCapturedOnce(world, call)
      return !BEFORE_START.includes(state)
    },
  }
}

/** What is asked at a row of a report; its call was started before. */
export async function reportActs(world: CrashWorld, call: ReadyCall): Promise<DeliveryActs> {
  const authorization = await authorized(world, call)
  const report = reportOf(authorization)
  const ask = () => completed(world, authorization, report)
  return {
    ask,
    async isDone() {
      const { state } = await viewOf(world, call)
      const [one, other] = [await ask(), await ask()]
      assertSame('receipt', receiptBytes(one), receiptBytes(other))
      await assertCapturedOnce(world, call)
      return !BEFORE_REPORT.includes(state)
    },
  }
}

/** A start is asked for as often as a busy kernel needs. */
async function authorized(world: CrashWorld, { ready, request }: ReadyCall): Promise<CallerAuthorization> {
  const { executionNonce } = ready
  if (executionNonce === null) throw new RangeError('start: expected a reserved call, got a refused one')
  const start = { arguments: request.params, context: null, credentials: {}, executionNonce }
  const answer: StartAnswer = await world.session.kernel.call('call_start', start)
  if (answer.authorization !== null) return answer.authorization
  throw new RangeError(`start: expected an authorization, got ${answer.reason}`)
}

async function completed(
  world: CrashWorld,
  authorization: CallerAuthorization,
  report: CallerReport,
): Promise<ReportAnswer> {
  const answer = await world.session.kernel.call('call_reconcile', { authorization, report })
  if (answer.state === 'completed') return answer
  throw new RangeError(`report: expected a completed call, got ${answer.reason}`)
}

function reportOf(authorization: CallerAuthorization): CallerReport {
  const { executor, not_before_unix_ms } = authorization.authorization
  const body = {
    authorization_digest: callerAuthorizationDigest(authorization),
    claim_id: randomUUID(),
    completed_at_unix_ms: not_before_unix_ms,
    execution_started_at_unix_ms: not_before_unix_ms,
    executor,
    output: { done: true },
    realized_cost: null,
    schema: 'chio.caller-delivery-report.v1' as const,
  }
  return signCallerReport(body, EXECUTOR_KEY)
}

function receiptBytes({ receipt }: ReportAnswer): Uint8Array {
  if (receipt === null) throw new RangeError('report: expected a receipt, got none')
  return encode(KernelReceipt, receipt)
}

function assertSame(what: string, one: Uint8Array, other: Uint8Array): void {
  if (Buffer.compare(one, other) === 0) return
  throw new RangeError(`${what}: expected the same bytes every time, got others`)
}

/** The token has one invocation: another call under it is refused, for this one holds it for good. */
async function assertCapturedOnce({ session }: CrashWorld, { request }: ReadyCall): Promise<void> {
  const other = { ...request, id: `call-${randomUUID()}` }
  const context = {
    generation: 0,
    labels: [],
    schema: 'chio.invocation-context.v1',
    session_id: 'crash',
  } as const
  const { code } = await session.kernel.call('call_preflight', { context, request: other })
  if (code !== 'grant_exhausted') throw new RangeError(`budget: expected an exhausted grant, got ${code}`)
}

/** Where it stands; a kernel that has a report of it ends it by itself. */
async function viewOf(world: CrashWorld, { ready }: ReadyCall): Promise<{ readonly state: string }> {
  const operationId = ready.operationId as string
  const look = () => world.session.kernel.call('inspect', { operationId })
  return world.until(look, ({ state }) => state !== 'finalizing', ENDED_WITHIN_MS)
}
