// Owns the only stretch in which a credential exists in the clear: decrypt, write into one buffer, send, scan the
// answer for it, wipe. Entered once a dispatch, in the run of its commit.
// Must never: throw. Whatever happens after the commit is an ending with what is known of the effect.
// Source: the broker protocol, sections 8.4 (20), 13 and 15.
import type { Dispatch } from './dispatch-commit.js'
import type { BrokerParts } from './parts.js'
import { exchange, type ExchangeResult } from './provider/exchange.js'
import { writeProviderRequest } from './provider/request-writer.js'
import type { ResponseRefusal } from './provider/response-refusal.js'
import { SecretScan } from './provider/secret-scan.js'
import type { RefusalReason } from './refusals.js'
import type { StoredResponse } from './stored-responses.js'

export type ExchangeEnding =
  | { readonly kind: 'response'; readonly response: StoredResponse }
  | { readonly kind: 'failure'; readonly reason: RefusalReason; readonly error: unknown }

export async function runProviderExchange(parts: BrokerParts, dispatch: Dispatch): Promise<ExchangeEnding> {
  let secret: Uint8Array
  try {
    secret = parts.credentials.openSecret(parts.store, dispatch.terms.credential)
  } catch (error) {
    dispatch.connection.drop()
    return { kind: 'failure', reason: 'custody_fault', error }
  }
  try {
    const ending = endingOf(await send(parts, dispatch, secret))
    return parts.isHurried() ? hurried(ending) : ending
  } catch (error) {
    dispatch.connection.drop()
    return { kind: 'failure', reason: 'dispatch_fault', error }
  } finally {
    secret.fill(0)
  }
}

function send(parts: BrokerParts, dispatch: Dispatch, secret: Uint8Array): Promise<ExchangeResult> {
  const { connection, deadlineBootNs, terms } = dispatch
  const { destination, options } = terms.request.request
  const scan = new SecretScan(secret, terms.credential.placement)
  const request = writeProviderRequest(terms.providerRequest, secret)
  const answered = exchange(connection, request, {
    clock: parts.clock,
    deadlineBootNs,
    method: destination.method,
    responseLimitBytes: options.responseLimitBytes,
    scan,
  })
  parts.atCutpoint('provider_written')
  return answered
}

function endingOf(result: ExchangeResult): ExchangeEnding {
  switch (result.ending) {
    case 'response': {
      const { status, headers, body } = result.response
      return { kind: 'response', response: { status, headers, body } }
    }
    case 'not_sent':
      return { kind: 'failure', reason: 'request_not_sent', error: result.error }
    case 'rejected':
      return { kind: 'failure', reason: rejectionOf(result.reason), error: result.error }
    case 'unknown': {
      const reason = result.reason === 'deadline_passed' ? 'provider_timeout' : 'provider_lost'
      return { kind: 'failure', reason, error: result.error }
    }
  }
}

/** It was us who hung up on the provider. */
function hurried(ending: ExchangeEnding): ExchangeEnding {
  if (ending.kind === 'response' || ending.reason !== 'provider_lost') return ending
  return { ...ending, reason: 'stop_hurried' }
}

/** The two that call for a hand (change the credential, raise the limit) by name; every other flaw of an answer as one. */
function rejectionOf(reason: ResponseRefusal): RefusalReason {
  if (reason === 'credential_reflected' || reason === 'response_too_large') return reason
  return 'response_rejected'
}
