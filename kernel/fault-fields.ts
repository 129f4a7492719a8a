// Owns: what the log says of an error: its code and its sentence.
// Must never: print what the error carries besides: a cause may hold what a peer sent.
// Source: the error table; "never content, tokens, peer bytes".
import { isBrokerError } from '../protocol/errors.js'

export function faultFields(error: unknown): { readonly code: string; readonly sentence: string } {
  return {
    code: isBrokerError(error) ? error.code : 'fault',
    sentence: error instanceof Error ? error.message : 'unknown fault',
  }
}
