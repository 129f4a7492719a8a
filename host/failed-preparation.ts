// Tells the kernel of a preparation that failed, in exactly one of two words. Never hides why it failed: a kernel that
// is away, or has ended the operation already, is told nothing.
// Source: a failed preparation reaches the kernel as `tool_server_error`.
import { isBrokerError } from '../protocol/errors.js'
import type { PreparationFailure } from '../protocol/failed-preparation.js'
import type { HostSession } from './session.js'

/** What the broker itself declined, for good; everything else it could not, or was not asked. */
const DENIED: ReadonlySet<string> = new Set(['authorization_denied', 'credential_unavailable'])

export function preparationFailureOf(cause: unknown): PreparationFailure {
  return isBrokerError(cause) && DENIED.has(cause.code) ? 'authorization_denied' : 'authority_unavailable'
}

/** Runs a preparation; its failure is told to the kernel before it is thrown on. */
export async function preparing<T>(
  { kernel }: HostSession,
  operationId: string,
  prepare: () => Promise<T>,
): Promise<T> {
  try {
    return await prepare()
  } catch (cause) {
    const error = { code: 'tool_server_error', detail: preparationFailureOf(cause) } as const
    await kernel.call('preparation_failed', { error, operationId }).catch(() => undefined)
    throw cause
  }
}
