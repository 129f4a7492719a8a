// What an approver is shown and signs for, after it was held against this user's own pins: the kernel's signature, the
// approvers that the proposal names, and that its digest is the one of exactly this intent.
import type { HostPins } from '../host/pins.js'
import type { ApprovalCase } from '../protocol/approval-rpc.js'
import { BrokerError } from '../protocol/errors.js'
import {
  type BrokeredRequestIntent,
  type GovernedIntent,
  governedIntentHash,
  subjectOf,
  type ToolCallIntent,
} from '../protocol/governed-intent.js'
import type { KernelClient } from '../client/kernel-client.js'
import { verifyProposal } from '../protocol/threshold-proposal.js'
import { beside } from './columns.js'

const LABEL_COLUMNS = 12

/** Reads one case and believes none of it before it was checked. @throws BrokerError `authorization_denied`. */
export async function readCase(
  kernel: KernelClient,
  pins: HostPins,
  operationId: string,
): Promise<ApprovalCase> {
  const shown = await kernel.call('approval_show', { operationId })
  const { approvers, intent, proposal } = shown
  verifyProposal(proposal, { approvers, policyAuthority: pins.kernelKey })
  const { body } = proposal
  const isThis =
    intent.body.operation_id === operationId &&
    intent.body.request_id === body.requestId &&
    subjectOf(intent) === body.subject &&
    governedIntentHash(intent) === body.governedIntentHash
  if (isThis) return shown
  throw new BrokerError(
    'authorization_denied',
    'approval case refused: expected the intent that the signed proposal names, got another; approve nothing and look at the kernel',
    { operationId },
  )
}

/** What would be done, in the words of the intent that is signed. */
export function caseLines({ intent, proposal, spoken, view }: ApprovalCase): string[] {
  const { body } = proposal
  const rows: readonly (readonly [string, string])[] = [
    ['state', view.state],
    ['approvals', `${view.approved} of ${view.required}${spokenText(spoken)}`],
    ['until', new Date(body.proposalDeadline * 1_000).toISOString()],
  ]
  return [
    ...intentLines(intent),
    ...rows.flatMap(([label, text]) => beside(label, text, LABEL_COLUMNS)),
    'operation',
    ` ${view.operationId}`,
    'intent digest, which approvers sign',
    ` ${body.governedIntentHash}`,
  ]
}

function spokenText(spoken: ApprovalCase['spoken']): string {
  return spoken.length === 0
    ? ''
    : ` (${spoken.map(said => `${said.approverId} ${said.decision}`).join(', ')})`
}

function intentLines(intent: GovernedIntent): string[] {
  return intent.kind === 'tool_call' ? callLines(intent.body) : requestLines(intent.body)
}

function callLines(intent: ToolCallIntent): string[] {
  const { maximum_cost: cost } = intent
  const rows: readonly (readonly [string, string])[] = [
    ['server', spelled(intent.server_id)],
    ['tool', spelled(intent.tool_name)],
    ['cost', cost === null ? 'not counted' : `at most ${cost.units} ${cost.currency}, in its smallest unit`],
    ['capability', spelled(intent.capability_id)],
    ['agent', intent.agent_public_key],
    ['call', spelled(intent.request_id)],
    ['arguments', `${intent.arguments_bytes} bytes; SHA-256`],
  ]
  return [
    ...rows.flatMap(([label, text]) => beside(label, text, LABEL_COLUMNS)),
    ` ${intent.arguments_sha256}`,
    'request digest, over tool, arguments, token and all that the call carries',
    ` ${intent.request_hash}`,
  ]
}

/** A name that its agent or its issuer chose: two that differ never look alike. */
function spelled(name: string): string {
  const escaped = (character: string) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
  return JSON.stringify(name).replace(/[^\x21-\x7e]/g, escaped)
}

function requestLines(intent: BrokeredRequestIntent): string[] {
  const { credential, destination } = intent
  const { exactPathAndQuery, explicitPort, method, normalizedHost } = destination
  const rows: readonly (readonly [string, string])[] = [
    ['request', `${method} https://${normalizedHost}:${explicitPort}${exactPathAndQuery}`],
    ['credential', `${credential.credentialId} version ${credential.version} of ${credential.provider}`],
    ['grant', intent.grant_id],
    ['caller', intent.caller_public_key],
    ['invocation', intent.request_id],
    ['timeout', `${intent.timeout_ms} ms`],
    ['answer', `at most ${intent.response_limit_bytes} bytes`],
    ['body', `${intent.body_bytes} bytes; SHA-256`],
  ]
  return [
    ...rows.flatMap(([label, text]) => beside(label, text, LABEL_COLUMNS)),
    ` ${intent.body_sha256}`,
    'request digest, over method, address, headers, body and options',
    ` ${intent.action_parameter_hash}`,
  ]
}
