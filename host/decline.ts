// Why the broker declined a preparation, in the words that it has for its trusted host: on the wire there is only the
// fixed code. Never changes whether anything was dispatched: a decline is certain.
import { BrokerError, isBrokerError } from '../protocol/errors.js'
import type { AdmittedOperation } from './admission.js'
import type { HostSession } from './session.js'

/** The decline stands already; why it was is worth no long wait. */
const ASKING_MS = 1_000

/** The refusal with the recorded reason of its attempt, where the broker recorded one. */
export async function explainedDecline(
  session: HostSession,
  { attemptId, operationId }: AdmittedOperation,
  cause: unknown,
): Promise<unknown> {
  if (!isBrokerError(cause)) return cause
  const attempt = await session.broker.attemptStatus(attemptId, ASKING_MS).catch(() => undefined)
  if (attempt?.reason == null || attempt.state !== 'failed') return cause
  const code = attempt.reason === 'credential_unavailable' ? attempt.reason : cause.code
  return new BrokerError(
    code,
    `preparation declined by the broker: ${sentenceOf(attempt.reason)} (docs/refusals.md)`,
    { outcome: 'not_started', operationId, cause },
  )
}

function sentenceOf(reason: string): string {
  if (reason !== 'credential_unavailable') return reason
  return 'credential_unavailable: expected a credential version that is stored and enabled, got one that is not'
}
