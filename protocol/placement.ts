// Where a credential goes in the outgoing request. It comes from the stored credential record alone:
// a caller that could choose name or format of the injected value could guess the secret (a public
// fault of another broker). Source: RFC 6750 §2.1 (bearer), RFC 7617 §2 (basic).
import { type Infer, object, tagged, text } from './codec.js'
import { BrokerError } from './errors.js'

/** Placement of a stored credential; `header` names a field of its own, `user` is the Basic user. */
export const CredentialPlacement = tagged('kind', {
  api_key_header: object({}),
  basic_authorization: object({ user: text({ minBytes: 1, maxBytes: 256 }) }),
  bearer_authorization: object({}),
  named_header: object({ header: text({ minBytes: 1, maxBytes: 128 }) }),
})
export type CredentialPlacement = Infer<typeof CredentialPlacement>

/** Names that a caller may never send, since they change framing, routing or authority (RFC 9110 §7.6.1). */
export const FORBIDDEN_CALLER_HEADERS: ReadonlySet<string> = new Set([
  'accept-encoding',
  'authorization',
  'connection',
  'content-length',
  'cookie',
  'expect',
  'host',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

/** The one header that the broker owns under a placement; equals `providerOwnedHeaders` of the capability. */
export function placementHeader(placement: CredentialPlacement): string {
  switch (placement.kind) {
    case 'api_key_header':
      return 'x-api-key'
    case 'basic_authorization':
    case 'bearer_authorization':
      return 'authorization'
    case 'named_header':
      return placement.header
  }
}

/** Refuses a placement whose named header would collide with framing or whose user would break Basic. */
export function checkPlacement(placement: CredentialPlacement): void {
  if (placement.kind === 'named_header' && !isPlaceableHeader(placement.header)) {
    throw new BrokerError(
      'invalid_request',
      'placement header refused: expected a lower-case field name outside framing, host and cookie fields, got another',
    )
  }
  if (placement.kind === 'basic_authorization' && !/^[\x21-\x39\x3b-\x7e]+$/.test(placement.user)) {
    throw new BrokerError(
      'invalid_request',
      'placement user refused: expected visible ASCII without a colon, got other characters',
    )
  }
}

function isPlaceableHeader(header: string): boolean {
  return /^[a-z0-9-]{1,128}$/.test(header) && !FORBIDDEN_CALLER_HEADERS.has(header)
}

/**
 * Parses the operator's form: `bearer`, `api-key`, `basic:USER`, `header:NAME`.
 * @throws BrokerError `invalid_request` when it is none of them.
 */
export function parsePlacement(form: string): CredentialPlacement {
  const [word, ...rest] = form.split(':')
  const argument = rest.join(':')
  const placement = placementOf(word ?? '', argument)
  if (placement === undefined) {
    throw new BrokerError(
      'invalid_request',
      'placement refused: expected bearer, api-key, basic:USER or header:NAME, got another form',
    )
  }
  checkPlacement(placement)
  return placement
}

function placementOf(word: string, argument: string): CredentialPlacement | undefined {
  if (word === 'bearer' && argument === '') return { kind: 'bearer_authorization' }
  if (word === 'api-key' && argument === '') return { kind: 'api_key_header' }
  if (word === 'basic' && argument !== '') return { kind: 'basic_authorization', user: argument }
  if (word === 'header' && argument !== '') return { kind: 'named_header', header: argument.toLowerCase() }
  return undefined
}
