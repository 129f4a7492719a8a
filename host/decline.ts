// Why the broker declined a preparation, in the words that it has for its trusted host: on the wire there is only the
// fixed code. Never changes whether anything was dispatched: a decline is certain.
import { BrokerError, isBrokerError } from '../protocol/errors.js'
import type { SlotStatus } from '../protocol/status.js'
import type { AdmittedOperation } from './admission.js'
import type { HostSession } from './session.js'

/** The decline stands already; why it was is worth no long wait. */
const ASKING_MS = 1_000

/** The refusal with what the broker says of it, where it says more than the code. */
export async function explainedDecline(
  session: HostSession,
  admitted: AdmittedOperation,
  cause: unknown,
): Promise<unknown> {
  if (!isBrokerError(cause)) return cause
  const { attemptId, operationId } = admitted
  const attempt = await session.broker.attemptStatus(attemptId, ASKING_MS).catch(() => undefined)
  const reason = attempt?.state === 'failed' ? attempt.reason : null
  if (reason === 'credential_unavailable') return declined(reason, CREDENTIAL_SENTENCE, operationId, cause)
  const sentence = reason === null ? await waitSentence(session, admitted) : `${reason} (docs/refusals.md)`
  return sentence === undefined ? cause : declined(cause.code, sentence, operationId, cause)
}

/** Why a prepared stream ended before its start was sent: nothing was spent on it. */
export async function endedPreparation(
  session: HostSession,
  { attemptId, operationId }: AdmittedOperation,
): Promise<BrokerError> {
  const attempt = await session.broker.attemptStatus(attemptId, ASKING_MS).catch(() => undefined)
  const reason = attempt?.state === 'failed' ? attempt.reason : null
  const ended = 'start not sent: expected the prepared stream open, got one that the broker ended'
  if (reason === 'deadline_expired') {
    const sentence = `${ended}: its deadline passed; it lives 30 s, and no longer than its grant`
    return new BrokerError('deadline_expired', sentence, { outcome: 'not_started', operationId })
  }
  const why = reason === null ? '' : `: ${reason} (docs/refusals.md)`
  return new BrokerError('broker_unavailable', `${ended}${why}`, { outcome: 'not_started', operationId })
}

const CREDENTIAL_SENTENCE =
  'expected a credential version that is stored and enabled, got one that is not; see chio credential list'

/** What a host has to wait for other than the slot: its grant's back-off, or the pause of its provider. */
async function waitSentence(session: HostSession, admitted: AdmittedOperation): Promise<string | undefined> {
  const slot = await session.broker.slotStatus(ASKING_MS).catch(() => undefined)
  return slot === undefined ? undefined : (backOffSentence(slot, admitted) ?? pauseSentence(slot, admitted))
}

/** Why and how long the grant of an operation has to wait; undefined when it does not. */
export function backOffSentence(
  { declining }: SlotStatus,
  { context }: AdmittedOperation,
): string | undefined {
  const grantId = context.request.capability.body.parentCapabilityId
  const grant = declining.grants.find(({ parentCapabilityId }) => parentCapabilityId === grantId)
  if (grant === undefined || grant.retryAfterMs === 0) return undefined
  return `grant_backed_off: ${grant.abandoned} preparations of this grant in a row held the slot in vain; retry after ${grant.retryAfterMs} ms`
}

function pauseSentence({ declining }: SlotStatus, { context }: AdmittedOperation): string | undefined {
  const { explicitPort, method, normalizedHost } = context.request.request.destination
  const grantId = context.request.capability.body.parentCapabilityId
  const provider = declining.providers.find(
    ({ host, method: paused, parentCapabilityId = grantId, port }) =>
      host === normalizedHost && port === explicitPort && paused === method && parentCapabilityId === grantId,
  )
  if (provider === undefined || provider.retryAfterMs === 0) return undefined
  return `provider_paused: the provider hung ${provider.hangs} times in a row; retry after ${provider.retryAfterMs} ms`
}

function declined(
  code: BrokerError['code'],
  sentence: string,
  operationId: string,
  cause: BrokerError,
): BrokerError {
  return new BrokerError(code, `preparation declined by the broker: ${sentence}`, {
    outcome: 'not_started',
    operationId,
    cause,
  })
}
