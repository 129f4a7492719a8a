// Owns a test's kernel with approvers and a grant that asks for two of them: requests that wait, what approvers say, and
// time that is held in the hand. Must never be reached from anything that ships.
import type { ApprovalMembers } from '../../protocol/approval-token.js'
import { type BrokerError, isBrokerError } from '../../protocol/errors.js'
import type { Grant } from '../../protocol/grant.js'
import type { ReserveRequest } from '../../protocol/kernel-rpc.js'
import { APPROVER_KEYS, type ApproverName, APPROVERS, wordOn } from './approvers.js'
import { announce, requestUnder } from './brokered-operation.js'
import { HeldClock } from './clock.js'
import { issueGrant, makeTestKernel, type TestKernel } from './kernel.js'
import { ScriptedRecords } from './scripted-records.js'

/** A connection may be idle for 300 s. */
const LONGEST_PASS_MS = 200_000

export class ApprovalWorld {
  readonly clock: HeldClock
  readonly kernel: TestKernel
  readonly grant: Grant

  private constructor(parts: Pick<ApprovalWorld, 'clock' | 'grant' | 'kernel'>) {
    this.clock = parts.clock
    this.kernel = parts.kernel
    this.grant = parts.grant
  }

  static async open(): Promise<ApprovalWorld> {
    const clock = new HeldClock(Math.floor(Date.now() / 1_000) * 1_000)
    const kernel = await makeTestKernel({ approvers: APPROVERS, clock, records: new ScriptedRecords() })
    const grant = await issueGrant(kernel, { maximumExecutions: 1, requiredApprovals: 2 }, clock)
    return new ApprovalWorld({ clock, grant, kernel })
  }

  reserve(announced: ReserveRequest) {
    return this.kernel.client.call('reserve', announced)
  }

  /** The same request with a proof of now. */
  fresh(announced: ReserveRequest): ReserveRequest {
    return { ...announced, proofIssuedAtUnixSeconds: Math.floor(this.clock.unixMs() / 1_000) }
  }

  caseOf(operationId: string) {
    return this.kernel.client.call('approval_show', { operationId })
  }

  async stateOf(operationId: string): Promise<string> {
    return (await this.kernel.client.call('inspect', { operationId })).state
  }

  async heldOf({ grantId }: Grant): Promise<number> {
    return (await this.kernel.client.call('show_grant', { grantId })).held
  }

  /** A request that waits for its approvals. */
  async waiting(under = this.grant) {
    const request = requestUnder(under)
    const announced = announce(this.kernel, under, request, this.clock)
    const refusal = await refusalOf(() => this.reserve(announced))
    if (refusal.code !== 'approval_required') throw refusal
    return { announced, operationId: refusal.operationId as string, request }
  }

  async say(operationId: string, who: ApproverName, changes: Partial<ApprovalMembers> = {}) {
    const { clock } = this
    const approval = wordOn(await this.caseOf(operationId), APPROVER_KEYS[who], { clock, ...changes })
    return this.kernel.client.call('approval_submit', { approval, operationId })
  }

  /** Lets time pass without a connection that is idle for too long. */
  async pass(milliseconds: number): Promise<void> {
    for (let left = milliseconds; left > 0; left -= LONGEST_PASS_MS) {
      this.clock.pass(Math.min(left, LONGEST_PASS_MS))
      await this.kernel.client.call('status', {})
    }
  }
}

export async function refusalOf(act: () => Promise<unknown>): Promise<BrokerError> {
  const error: unknown = await act().then(
    () => undefined,
    (cause: unknown) => cause,
  )
  if (isBrokerError(error)) return error
  throw new Error(`expected a refusal, got ${String(error)}`, { cause: error })
}
