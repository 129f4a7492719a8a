// Owns what a host tells the kernel of a preparation that failed: the error of the tool server, with one of two words.
// Must never: carry more: why a broker declined is no business of whoever authorized.
// Source: the broker protocol's answer to a failed preparation; `tool_server_error` of the tool call response.
import { digest, type Infer, literal, object, oneOf } from './codec.js'

export const PREPARATION_FAILURES = ['authorization_denied', 'authority_unavailable'] as const
export type PreparationFailure = (typeof PREPARATION_FAILURES)[number]

export const FailedPreparation = object({
  error: object({ code: literal('tool_server_error'), detail: oneOf(...PREPARATION_FAILURES) }),
  operationId: digest(),
})
export type FailedPreparation = Infer<typeof FailedPreparation>
