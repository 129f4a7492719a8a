// Owns: which executor a kernel delivers to, and that an operation stays under the one it was admitted for.
// Must never: let a pin that changed take over what was admitted under another, or pin an executor to a kernel that
// forgets what it committed. Source: the pinned caller executor, set before recovery.
import { CallerExecutor, foreignMemberOf } from '../../protocol/caller-authorization.js'
import { encode } from '../../protocol/codec.js'
import { BrokerError } from '../../protocol/errors.js'
import { admitPublicKey } from '../../protocol/keys.js'
import type { CallPolicy } from '../calls/call-store.js'
import type { KernelConfig } from '../config.js'
import { type AdmissionOperation, isToolCall, toolCallOf } from '../operation/operation.js'

/**
 * The executor of an embedding, or else that of the configuration; null where neither names one.
 * @throws BrokerError `invalid_configuration` for one that is malformed, or where both name different ones.
 */
export function pinnedExecutor(
  { callerDelivery }: Pick<KernelConfig, 'callerDelivery'>,
  given: CallerExecutor | null = null,
): CallerExecutor | null {
  const configured = callerDelivery === null ? null : executorOf(callerDelivery.executor)
  if (given === null) return configured
  admitExecutor(given)
  if (configured === null || foreignMemberOf(given, configured) === undefined) return given
  throw new BrokerError(
    'invalid_configuration',
    `caller executor refused: expected the ${pinText(configured)} of the configuration, got ${pinText(given)}`,
  )
}

function executorOf({
  executorId,
  keyEpoch,
  publicKey,
}: NonNullable<KernelConfig['callerDelivery']>['executor']): CallerExecutor {
  return { executor_id: executorId, key_epoch: keyEpoch, public_key: publicKey }
}

function admitExecutor(executor: CallerExecutor): void {
  try {
    encode(CallerExecutor, executor)
    admitPublicKey(executor.public_key, 'caller executor public_key')
  } catch (cause) {
    const said = cause instanceof Error ? cause.message : 'refused'
    throw new BrokerError('invalid_configuration', `caller executor refused: ${said}`, { cause })
  }
}

/**
 * An operation is delivered under the pin of its admission, or not at all.
 * @throws BrokerError `executor_changed` naming both.
 */
export function assertSamePin(
  operation: AdmissionOperation,
  { executor }: Pick<CallPolicy, 'executor'>,
): void {
  const { call } = operation
  const { executor: admitted } = (isToolCall(call) ? call : toolCallOf(operation)).terms
  if (isSamePin(admitted, executor)) return
  const { operationId } = operation
  throw new BrokerError(
    'executor_changed',
    `operation ${operationId} refused: expected its own pin, ${pinText(admitted)}, got ${pinText(executor)}; it stays as it is until its own is pinned again`,
    { operationId },
  )
}

export function isSamePin(one: CallerExecutor | null, other: CallerExecutor | null): boolean {
  if (one === null || other === null) return one === other
  return foreignMemberOf(one, other) === undefined
}

/** A pin in words: its key by its first digits, which tell apart what id and epoch do not. */
export function pinText(executor: CallerExecutor | null): string {
  if (executor === null) return 'no executor'
  const { executor_id, key_epoch, public_key } = executor
  return `executor ${executor_id} of epoch ${key_epoch}, key ${public_key.slice(0, 16)}`
}

/** @throws BrokerError `authorization_denied` for a pinned executor beside a store that may forget. */
export function assertRecoverable({ executor, isDurable }: Pick<CallPolicy, 'executor' | 'isDurable'>): void {
  if (executor === null || isDurable) return
  throw new BrokerError(
    'authorization_denied',
    'caller execution requires qualified native capture and recoverable release custody: expected durable admission, got durableMode off',
    { outcome: 'not_started' },
  )
}
