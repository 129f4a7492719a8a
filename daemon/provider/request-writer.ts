// Owns the bytes of the outgoing request: one Buffer, head in a fixed order, credential last, wiped by
// whoever sent it. Placement comes from the stored credential record; nothing that a caller sends moves,
// formats or repeats it. Must never hold the secret in a string: that could not be wiped.
// Source: RFC 9112 §3, RFC 9110 §7.2, RFC 6750 §2.1, RFC 7617 §2; broker wire §5.2, §5.3, §13.

import {
  type BrokerDestination,
  checkDestination,
  checkHeaderFields,
  type HeaderField,
  METHODS,
} from '../../protocol/destination.js'
import { BrokerError } from '../../protocol/errors.js'
import {
  MAXIMUM_BODY_BYTES,
  MAXIMUM_HEADER_COUNT,
  MAXIMUM_HEADER_VALUE_BYTES,
  MAXIMUM_SECRET_BYTES,
} from '../../protocol/limits.js'
import {
  checkPlacement,
  type CredentialPlacement,
  FORBIDDEN_CALLER_HEADERS,
  placementHeader,
} from '../../protocol/placement.js'
import { base64Bytes } from './secret-encodings.js'

export interface ProviderRequest {
  readonly destination: BrokerDestination
  /** Caller's headers, strictly sorted, none that the broker or the framing owns. */
  readonly headers: readonly HeaderField[]
  readonly body: Uint8Array
  readonly placement: CredentialPlacement
}

declare const admitted: unique symbol
/** A request whose every part was checked; only such a one is written. */
export type AdmittedProviderRequest = ProviderRequest & { readonly [admitted]: true }

type Part = string | Uint8Array
const CR_LF = '\r\n'
const HOLE = '[credential]'

/**
 * Checks a request before anything is prepared, without the secret.
 * @throws BrokerError `invalid_request` naming the part, never its content.
 */
export function admitProviderRequest(request: ProviderRequest): AdmittedProviderRequest {
  const { destination, headers, body, placement } = request
  if (!METHODS.includes(destination.method)) refuse('method', `one of ${METHODS.join(' ')}`)
  if (!isPort(destination.explicitPort)) refuse('destination port', '1 to 65535')
  checkDestination(destination)
  checkPlacement(placement)
  if (headers.length > MAXIMUM_HEADER_COUNT)
    refuse('caller headers', `at most ${MAXIMUM_HEADER_COUNT}, got ${headers.length}`)
  checkHeaderFields(headers, 'caller header')
  for (const header of headers) admitCallerHeader(header, placementHeader(placement))
  if (body.length > MAXIMUM_BODY_BYTES)
    refuse('request body', `at most ${MAXIMUM_BODY_BYTES} bytes, got ${body.length}`)
  return request as AdmittedProviderRequest
}

/**
 * Checks a secret where it enters: what cannot stand in a header value is refused at provisioning.
 * @throws BrokerError `invalid_request`; says only its length.
 */
export function assertInjectable(secret: Uint8Array): void {
  if (secret.length < 1 || secret.length > MAXIMUM_SECRET_BYTES) {
    refuse('credential', `1 to ${MAXIMUM_SECRET_BYTES} bytes, got ${secret.length}`)
  }
  if (!secret.every(byte => byte >= 0x21 && byte <= 0x7e)) {
    refuse('credential', 'visible ASCII without spaces or line ends (check for a final newline)')
  }
}

/**
 * Writes head and body into one buffer of their exact size.
 * @returns a buffer that shares memory with nothing; its owner fills it with zeros after sending.
 */
export function writeProviderRequest(request: AdmittedProviderRequest, secret: Uint8Array): Buffer {
  assertInjectable(secret)
  const value = credentialParts(request.placement, secret)
  const parts = [...headParts(request), ...value.parts, CR_LF + CR_LF, request.body]
  const buffer = Buffer.allocUnsafeSlow(parts.reduce((total, part) => total + part.length, 0))
  let offset = 0
  for (const part of parts) {
    if (typeof part === 'string') buffer.write(part, offset, 'latin1')
    else buffer.set(part, offset)
    offset += part.length
  }
  value.wipe()
  return buffer
}

/** The head with a hole where the credential goes, for a dry run: needs no secret, so it can leak none. */
export function previewProviderRequest(request: AdmittedProviderRequest): string {
  const scheme = SCHEME_WORDS[request.placement.kind]
  const parts = [...headParts(request), scheme, HOLE, CR_LF + CR_LF]
  return parts.map(part => (typeof part === 'string' ? part : Buffer.from(part).toString('latin1'))).join('')
}

const SCHEME_WORDS: Record<CredentialPlacement['kind'], string> = {
  api_key_header: '',
  basic_authorization: 'Basic ',
  bearer_authorization: 'Bearer ',
  named_header: '',
}

/** All up to the value of the credential's header; every string is ASCII by the checks above. */
function headParts({ destination, headers, body, placement }: AdmittedProviderRequest): Part[] {
  const opening = [
    `${destination.method} ${destination.exactPathAndQuery} HTTP/1.1`,
    `Host: ${hostField(destination)}`,
    'Connection: close',
    'Accept-Encoding: identity',
    `Content-Length: ${body.length}`,
    '',
  ].join(CR_LF)
  const fields = headers.flatMap(({ name, value }): Part[] => [`${name}: `, value, CR_LF])
  return [opening, ...fields, `${placementHeader(placement)}: `]
}

function hostField({ normalizedHost, explicitPort }: BrokerDestination): string {
  const host = normalizedHost.includes(':') ? `[${normalizedHost}]` : normalizedHost
  return explicitPort === 443 ? host : `${host}:${explicitPort}`
}

function credentialParts(
  placement: CredentialPlacement,
  secret: Uint8Array,
): { parts: Part[]; wipe(): void } {
  const scheme = SCHEME_WORDS[placement.kind]
  if (placement.kind !== 'basic_authorization') return { parts: [scheme, secret], wipe: () => undefined }
  const pair = Buffer.concat([Buffer.from(`${placement.user}:`, 'latin1'), secret])
  const encoded = base64Bytes(pair)
  pair.fill(0)
  return { parts: [scheme, encoded], wipe: () => encoded.fill(0) }
}

function admitCallerHeader({ name, value }: HeaderField, ownedName: string): void {
  if (FORBIDDEN_CALLER_HEADERS.has(name))
    refuse(`caller header ${name}`, 'a header outside framing, routing and authority')
  if (name === ownedName)
    refuse(`caller header ${name}`, 'a header other than the one that carries the credential')
  if (value.length > MAXIMUM_HEADER_VALUE_BYTES) {
    refuse(`caller header ${name}`, `at most ${MAXIMUM_HEADER_VALUE_BYTES} bytes, got ${value.length}`)
  }
}

function isPort(port: number): boolean {
  return Number.isInteger(port) && port >= 1 && port <= 65_535
}

function refuse(what: string, expected: string): never {
  throw new BrokerError('invalid_request', `${what} refused: expected ${expected}`)
}
