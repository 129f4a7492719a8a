// Owns what the log says of an error that the sidecar met: our own sentence where it is ours; else its kind alone.
// Must never: repeat a foreign message: a parser's or a router's quotes what a client sent.
import { faultFields } from '../kernel/fault-fields.js'
import { isBrokerError } from '../protocol/errors.js'

export function faultOf(error: unknown): { readonly code: string; readonly sentence: string } {
  if (isBrokerError(error)) return faultFields(error)
  const { code, name } = (error ?? {}) as NodeJS.ErrnoException
  return { code: code ?? 'fault', sentence: name ?? 'unknown fault' }
}
