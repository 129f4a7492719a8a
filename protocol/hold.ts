// The kernel's answer about one captured hold, the revocation set it was captured against, and the
// digest of the authority's own description.
import {
  array,
  digest,
  encode,
  type Infer,
  identifier,
  literal,
  object,
  oneOf,
  publicKeyHex,
  textOrObject,
} from './codec.js'
import { domainDigestHex } from './digest.js'
import type { PublicKey } from './keys.js'
import { MAXIMUM_REVOCATION_SET_MEMBERS } from './limits.js'
import { Count } from './unix-time.js'

/** Commit indexes under which a hold was captured; they enter the evidence. */
export const CapturedHold = object({
  authorityCommitIndex: Count,
  budgetCommitIndex: Count,
  checkedRevocationSetDigest: digest(),
  leaderEpoch: Count,
  revocationCommitIndex: Count,
})
export type CapturedHold = Infer<typeof CapturedHold>

/** `"unknown"`, `"denied"`, `"held"`, `"reversed"` or `{captured: …}`. Only captured permits dispatch. */
export const HoldState = textOrObject(
  oneOf('denied', 'held', 'reversed', 'unknown'),
  object({ captured: CapturedHold }),
)
export type HoldState = Infer<typeof HoldState>

/** Everything whose revocation ends an execution, in byte order and without doubles. */
export function revocationSet(ids: readonly string[]): string[] {
  return [...new Set(ids)].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
}

const RevocationSet = array(identifier(), { min: 1, max: MAXIMUM_REVOCATION_SET_MEMBERS })

export function revocationSetDigest(ids: readonly string[]): string {
  return domainDigestHex('chio.revocation-set.v1', encode(RevocationSet, revocationSet(ids)))
}

export const AUTHORITY_METADATA_SCHEMA = 'chio.authority-metadata.v1'

const AuthorityMetadata = object({
  authority: publicKeyHex(),
  revocationAuthorityDomain: identifier(),
  schema: literal(AUTHORITY_METADATA_SCHEMA),
})

/** The one write domain of revocations under an authority key. */
export function revocationAuthorityDomain(authority: PublicKey): string {
  return `chio.kernel:${authority}`
}

/** Names an authority and its revocation domain in a registration. */
export function authorityMetadataDigest(authority: PublicKey): string {
  const metadata = {
    authority,
    revocationAuthorityDomain: revocationAuthorityDomain(authority),
    schema: AUTHORITY_METADATA_SCHEMA,
  } as const
  return domainDigestHex(AUTHORITY_METADATA_SCHEMA, encode(AuthorityMetadata, metadata))
}

/** The id under which a grant can be revoked; one for every capability minted from it. */
export function grantRevocationId(grantId: string): string {
  return `revocation-${grantId}`
}
