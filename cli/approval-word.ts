// chio approval approve | deny: one approver's word on one operation, signed over exactly what approval show prints.
import { randomUUID } from 'node:crypto'
import { systemClock } from '../native/clock.js'
import type { ApprovalCase } from '../protocol/approval-rpc.js'
import type { GovernedApprovalToken } from '../protocol/approval-token.js'
import { unixSeconds } from '../protocol/clock.js'
import { BrokerError } from '../protocol/errors.js'
import type { SigningKey } from '../protocol/keys.js'
import { answerProposal } from '../protocol/threshold-proposal.js'
import { type ApproverKeyOptions, withApproverKey } from './approver.js'
import { caseLines, readCase } from './approval-case.js'
import { readPins } from './host-session.js'
import { withKernel } from './kernel-call.js'
import { parseOperationId } from './operation-argument.js'
import { type CommonOptions, print } from './output.js'
import { findState, layoutOfState } from './state.js'

type WordOptions = ApproverKeyOptions & CommonOptions
type Decision = GovernedApprovalToken['decision']

/** Agrees to exactly this operation. */
export function approveOperation(id: string, options: WordOptions): Promise<void> {
  return say(id, 'approved', options)
}

/** Refuses it; the kernel takes it back. */
export function denyOperation(id: string, options: WordOptions): Promise<void> {
  return say(id, 'denied', options)
}

async function say(id: string, decision: Decision, options: WordOptions): Promise<void> {
  const operationId = parseOperationId(id)
  const pins = readPins(layoutOfState(findState(options.state)))
  await withApproverKey(options, key =>
    withKernel(options, async kernel => {
      const shown = await readCase(kernel, pins, operationId)
      const { approval, approverId } = wordOn(shown, decision, key)
      const view = await kernel.call('approval_submit', { approval, operationId })
      print(
        options,
        { schema: 'chio.approval-given.v1', approvalId: approval.id, approverId, decision, view },
        [
          ...caseLines({ ...shown, view }),
          `${decision} by ${approverId}: ${view.approved} of ${view.required} agreed, ${view.state}`,
        ],
      )
    }),
  )
}

/** The word lives as long as the question. @throws BrokerError `authorization_denied` for a key that has no say. */
function wordOn(
  { approvers, proposal }: ApprovalCase,
  decision: Decision,
  key: SigningKey,
): { readonly approval: GovernedApprovalToken; readonly approverId: string } {
  const approver = approvers.find(({ publicKey }) => publicKey === key.publicKey)
  if (approver === undefined) {
    throw new BrokerError(
      'authorization_denied',
      `approval refused: expected the key of an approver of this kernel (${approvers.map(({ approverId }) => approverId).join(', ')}), got another`,
    )
  }
  const answer = { decision, id: `approval-${randomUUID()}`, nowUnixSeconds: unixSeconds(systemClock) }
  return { approval: answerProposal(proposal.body, answer, key), approverId: approver.approverId }
}
