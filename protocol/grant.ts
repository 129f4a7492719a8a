// A grant: what an administrator lets one caller key do with one credential version, how often and
// until when. It is the parent of every broker capability that the kernel mints under it.
import {
  array,
  encode,
  type Infer,
  identifier,
  integer,
  literal,
  object,
  publicKeyHex,
  text,
} from './codec.js'
import {
  BrokerDestination,
  CredentialRef,
  checkDestination,
  checkHeaderNames,
  isAddressLiteral,
} from './destination.js'
import { sha256Hex } from './digest.js'
import { BrokerError } from './errors.js'
import { admitPublicKey } from './keys.js'
import {
  MAXIMUM_APPROVALS,
  MAXIMUM_BODY_BYTES,
  MAXIMUM_HEADER_COUNT,
  MAXIMUM_HEADER_NAME_BYTES,
  MAXIMUM_INTEGER,
  MAXIMUM_RESPONSE_BYTES,
  MAXIMUM_TIMEOUT_MS,
} from './limits.js'
import {
  CredentialPlacement,
  checkPlacement,
  FORBIDDEN_CALLER_HEADERS,
  placementHeader,
} from './placement.js'
import { UnixSeconds } from './unix-time.js'

export const GRANT_SCHEMA = 'chio.kernel-grant.v1'

export const Grant = object({
  allowedCallerHeaders: array(text({ minBytes: 1, maxBytes: MAXIMUM_HEADER_NAME_BYTES }), {
    max: MAXIMUM_HEADER_COUNT,
  }),
  callerPublicKey: publicKeyHex(),
  credential: CredentialRef,
  destination: BrokerDestination,
  expiresAtUnixSeconds: UnixSeconds,
  grantId: identifier(128),
  issuedAtUnixSeconds: UnixSeconds,
  maximumBodyBytes: integer({ min: 0, max: MAXIMUM_BODY_BYTES }),
  maximumExecutions: integer({ min: 1, max: MAXIMUM_INTEGER }),
  maximumResponseBytes: integer({ min: 1, max: MAXIMUM_RESPONSE_BYTES }),
  maximumTimeoutMs: integer({ min: 1, max: MAXIMUM_TIMEOUT_MS }),
  placement: CredentialPlacement,
  /** Approvers who have to agree to each operation; 0 where nobody is asked. */
  requiredApprovals: integer({ min: 0, max: MAXIMUM_APPROVALS }),
  schema: literal(GRANT_SCHEMA),
  tenantScope: identifier(),
})
export type Grant = Infer<typeof Grant>

/** SHA-256 of the canonical grant: the authorization that an operation under it commits to. */
export function grantDigest(grant: Grant): string {
  return sha256Hex(encode(Grant, grant))
}

/** Refuses a grant that contradicts itself. @throws BrokerError `invalid_request` naming the member. */
export function checkGrant(grant: Grant): void {
  if (!/^[a-z0-9][a-z0-9-]{0,127}$/.test(grant.grantId))
    refuse('grantId', 'lower-case letters, digits and hyphens')
  if (grant.issuedAtUnixSeconds >= grant.expiresAtUnixSeconds)
    refuse('expiresAtUnixSeconds', 'a time after its issue')
  admitPublicKey(grant.callerPublicKey, 'grant caller key')
  checkDestination(grant.destination)
  // Otherwise found out at the first run: the broker looks for no provider by its address.
  if (isAddressLiteral(grant.destination.normalizedHost))
    refuse('destination.normalizedHost', 'a DNS name, got an address; give the name in its certificate')
  checkPlacement(grant.placement)
  checkHeaderNames(grant.allowedCallerHeaders, 'allowedCallerHeaders')
  const owned = placementHeader(grant.placement)
  if (grant.allowedCallerHeaders.some(name => name === owned || FORBIDDEN_CALLER_HEADERS.has(name))) {
    refuse('allowedCallerHeaders', 'no framing, host, cookie or credential field')
  }
}

function refuse(member: string, expected: string): never {
  throw new BrokerError('invalid_request', `grant ${member} refused: expected ${expected}`)
}
