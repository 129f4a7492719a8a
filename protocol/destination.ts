// Where a request goes and which headers it carries: credential reference, destination, header list.
// Shapes are codecs; what a shape cannot say (normal form of a host, order of a header list) is a
// check beside it. Source: RFC 9110 §5 (fields), RFC 3986 §2 (path), RFC 1123 §2.1 (host names).
import { array, bytes, type Infer, identifier, integer, object, oneOf, text } from './codec.js'
import { BrokerError } from './errors.js'
import {
  MAXIMUM_HEADER_COUNT,
  MAXIMUM_HEADER_NAME_BYTES,
  MAXIMUM_HEADER_VALUE_BYTES,
  MAXIMUM_PATH_AND_QUERY_BYTES,
  MAXIMUM_INTEGER,
} from './limits.js'

/** A stored credential by name, provider and immutable version (≥ 1). */
export const CredentialRef = object({
  credentialId: identifier(),
  provider: identifier(),
  version: integer({ min: 1, max: MAXIMUM_INTEGER }),
})
export type CredentialRef = Infer<typeof CredentialRef>

export const METHODS = ['DELETE', 'GET', 'HEAD', 'OPTIONS', 'PATCH', 'POST', 'PUT'] as const
export type Method = (typeof METHODS)[number]

/** One exact provider endpoint: method, origin, path and query as they go on the wire. */
export const BrokerDestination = object({
  exactPathAndQuery: text({ minBytes: 1, maxBytes: MAXIMUM_PATH_AND_QUERY_BYTES }),
  explicitPort: integer({ min: 1, max: 65_535 }),
  method: oneOf(...METHODS),
  normalizedHost: text({ minBytes: 1, maxBytes: 253 }),
  scheme: oneOf('https'),
})
export type BrokerDestination = Infer<typeof BrokerDestination>

/** One header field; the value is bytes, the name lower case. */
export const HeaderField = object({
  name: text({ minBytes: 1, maxBytes: MAXIMUM_HEADER_NAME_BYTES }),
  value: bytes({ max: MAXIMUM_HEADER_VALUE_BYTES }),
})
export type HeaderField = Infer<typeof HeaderField>
export const HeaderFields = array(HeaderField, { max: MAXIMUM_HEADER_COUNT })

const HOST_LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/
const PATH = /^\/(?:[\x21\x22\x24\x26-\x5b\x5d-\x7e]|%[0-9A-Fa-f]{2})*$/
const HEADER_NAME = /^[a-z0-9-]{1,128}$/

function refuse(what: string, expected: string): never {
  throw new BrokerError('invalid_request', `${what} refused: expected ${expected}`)
}

/**
 * Refuses a destination that is not in its one normal form.
 * @throws BrokerError `invalid_request` naming the member; never its content.
 */
export function checkDestination(destination: BrokerDestination): void {
  if (!isNormalHost(destination.normalizedHost)) {
    refuse('destination.normalizedHost', 'a lower-case DNS name or IP literal without brackets or final dot')
  }
  if (!PATH.test(destination.exactPathAndQuery)) {
    refuse(
      'destination.exactPathAndQuery',
      'a path from / in visible ASCII with valid % escapes, no # and no \\',
    )
  }
}

function isNormalHost(host: string): boolean {
  if (host.includes(':')) return /^[0-9a-f:.]{2,45}$/.test(host)
  return host.split('.').every(label => HOST_LABEL.test(label))
}

/**
 * Whether a host is an address in any spelling that inet_aton(3) takes, not a name: `127.1`,
 * `2130706433`, `0x7f000001`, `0177.0.0.1`, `::1`. No top-level domain is a number (RFC 3696 §2),
 * so a numeric last label decides.
 */
export function isAddressLiteral(host: string): boolean {
  if (host.includes(':') || host.includes('[')) return true
  const lastLabel = host.replace(/\.+$/, '').split('.').pop() ?? ''
  return /^(?:0x[0-9a-f]*|[0-9]+)$/i.test(lastLabel)
}

/** Refuses a header list that is not strictly sorted by name, or holds a name or value byte outside RFC 9110. */
export function checkHeaderFields(fields: readonly HeaderField[], what: string): void {
  let previous = ''
  for (const { name, value } of fields) {
    if (!HEADER_NAME.test(name)) refuse(`${what} name`, 'lower-case letters, digits and hyphens')
    if (name <= previous) refuse(`${what} order`, 'names strictly ascending, none twice')
    if (!value.every(isFieldByte)) refuse(`${what} ${name}`, 'tab, visible ASCII or 0x80–0xff in the value')
    previous = name
  }
}

function isFieldByte(byte: number): boolean {
  return byte === 0x09 || (byte >= 0x20 && byte <= 0x7e) || byte >= 0x80
}

/** Refuses a list of header names that is not normalized, strictly sorted and at most 64 long. */
export function checkHeaderNames(names: readonly string[], what: string): void {
  names.forEach((name, index) => {
    if (!HEADER_NAME.test(name)) refuse(`${what} name`, 'lower-case letters, digits and hyphens')
    if (index > 0 && name <= (names[index - 1] as string)) refuse(`${what} order`, 'names strictly ascending')
  })
}

/**
 * Reads an absolute https URL into its normal form.
 * @param url without user information and fragment; the default port becomes explicit.
 * @throws BrokerError `invalid_request` when a part is not allowed.
 */
export function destinationFromUrl(url: string, method: string): BrokerDestination {
  if (!URL.canParse(url)) refuse('URL', 'an absolute https URL, got none')
  const parsed = new URL(url)
  if (parsed.protocol !== 'https:') refuse('URL scheme', `https, got ${parsed.protocol.slice(0, 16)}`)
  if (parsed.username !== '' || parsed.password !== '')
    refuse('URL', 'no user information before the host, got some')
  if (url.includes('#')) refuse('URL', 'no fragment, got one')
  const known = METHODS.find(name => name === method)
  if (known === undefined) refuse('method', `one of ${METHODS.join(' ')}, got another`)
  const destination: BrokerDestination = {
    exactPathAndQuery: parsed.pathname + parsed.search,
    explicitPort: parsed.port === '' ? 443 : Number(parsed.port),
    method: known,
    normalizedHost: parsed.hostname.replace(/^\[|\]$/g, '').replace(/\.+$/, ''),
    scheme: 'https',
  }
  checkDestination(destination)
  return destination
}

/** Whether two destinations are the same endpoint, member by member. */
export function sameDestination(left: BrokerDestination, right: BrokerDestination): boolean {
  return (
    left.exactPathAndQuery === right.exactPathAndQuery &&
    left.explicitPort === right.explicitPort &&
    left.method === right.method &&
    left.normalizedHost === right.normalizedHost &&
    left.scheme === right.scheme
  )
}

/** Whether two references name the same credential version. */
export function sameCredential(left: CredentialRef, right: CredentialRef): boolean {
  return (
    left.credentialId === right.credentialId &&
    left.provider === right.provider &&
    left.version === right.version
  )
}
