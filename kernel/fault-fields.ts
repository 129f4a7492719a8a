// Owns: what the log says of an error: its code and its sentence; which codes say more about this machine than about
// a request.
// Must never: print what the error carries besides: a cause may hold what a peer sent.
// Source: the error table; "never content, tokens, peer bytes".
import type { ErrorCode } from '../protocol/error-codes.js'
import { type BrokerError, isBrokerError } from '../protocol/errors.js'

const OF_MACHINE: ReadonlySet<ErrorCode> = new Set([
  'attachment_forbidden',
  'attachment_missing',
  'custody',
  'fenced',
  'illegal_transition',
  'invariant',
  'storage',
  'store_missing',
  'store_replaced',
])

/** Whether an error says something of the records of this machine, and nothing of the request. */
export function saysOfMachine({ code }: BrokerError): boolean {
  return OF_MACHINE.has(code)
}

export function faultFields(error: unknown): { readonly code: string; readonly sentence: string } {
  return {
    code: isBrokerError(error) ? error.code : 'fault',
    sentence: error instanceof Error ? error.message : 'unknown fault',
  }
}
