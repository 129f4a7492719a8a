// chio capability revoke: the broker first, since its own list works with the kernel silent; then the
// kernel. A grant that a kernel which answers does not hold is refused, and the broker is not told. What each stored is printed; one that is missing is exit 69, and repeating is safe.
import type { Administrator } from '../client/administrator.js'
import type { CredentialRef } from '../protocol/destination.js'
import { ERROR_CODES } from '../protocol/error-codes.js'
import { isBrokerError } from '../protocol/errors.js'
import { MAXIMUM_IDENTIFIER_BYTES } from '../protocol/limits.js'
import { asAdministrator } from './administrator.js'
import { namedText } from './named-text.js'
import { type CommonOptions, print } from './output.js'
import { findState, layoutOfState } from './state.js'

/** What one owner stored, or why it did not. */
interface Stored {
  readonly commitIndex: number | null
  readonly error: string | null
}

/** The reference is for the record only: the broker's list is keyed by the grant's id. */
const UNKNOWN_CREDENTIAL: CredentialRef = { credentialId: 'unknown', provider: 'unknown', version: 1 }

export interface RevokeOptions extends CommonOptions {
  /** The id is that of an agent's capability token: the kernel alone knows those. */
  readonly token?: boolean
}

/** Ends a token of a tool call, and everything delegated from it, at the next check. Repeating is safe. */
async function revokeToken(token: string, options: CommonOptions): Promise<void> {
  const capabilityId = namedText(token, 'token', MAXIMUM_IDENTIFIER_BYTES)
  const layout = layoutOfState(findState(options.state))
  const { commitIndex, newlyRevoked } = await asAdministrator(layout, administrator =>
    administrator.revokeCapability(capabilityId),
  )
  print(options, { schema: 'chio.token-revoked.v1', capabilityId, commitIndex, newlyRevoked }, [
    `kernel: ${newlyRevoked ? 'revoked' : 'revoked before'}, commit ${commitIndex}`,
    'Every token that was delegated from it ends with it.',
  ])
}

/** Revokes a grant at both owners, or with `--token` a token at the kernel. */
export async function revokeCapability(grant: string, options: RevokeOptions): Promise<void> {
  if (options.token === true) return revokeToken(grant, options)
  const grantId = namedText(grant, 'grant', 128)
  const layout = layoutOfState(findState(options.state))
  const { broker, kernel } = await asAdministrator(layout, async administrator => {
    const credential = await credentialOf(administrator, grantId)
    // Nothing is put on the broker's list for a slip of the pen; the kernel's own refusal is the answer.
    if (credential === 'not shown') await administrator.revokeAtKernel(grantId)
    const told = await attempt(() => administrator.revokeAtBroker(grantId, known(credential)))
    return { broker: told, kernel: await attempt(() => administrator.revokeAtKernel(grantId)) }
  })
  const document = { schema: 'chio.capability-revoked.v1', grantId, broker, kernel }
  print(options, document, [lineOf('broker', broker), lineOf('kernel', kernel)])
  if (broker.error !== null || kernel.error !== null)
    process.exitCode = ERROR_CODES.authority_unavailable.exitCode
}

/** A grant that the kernel does not show may be another client's: only its revocation tells it from none. */
type Sought = CredentialRef | 'kernel silent' | 'not shown'

function known(credential: Sought): CredentialRef {
  return typeof credential === 'string' ? UNKNOWN_CREDENTIAL : credential
}

async function credentialOf(administrator: Administrator, grantId: string): Promise<Sought> {
  try {
    return (await administrator.kernel.call('show_grant', { grantId })).grant.credential
  } catch (error) {
    if (!isBrokerError(error)) throw error
    return error.code === 'grant_unknown' ? 'not shown' : 'kernel silent'
  }
}

async function attempt(act: () => Promise<number>): Promise<Stored> {
  try {
    return { commitIndex: await act(), error: null }
  } catch (error) {
    if (!isBrokerError(error)) throw error
    return { commitIndex: null, error: error.message }
  }
}

function lineOf(owner: string, stored: Stored): string {
  return stored.error === null
    ? `${owner}: revoked, commit ${stored.commitIndex}`
    : `${owner}: NOT revoked: ${stored.error}; repeat the command when it serves`
}
