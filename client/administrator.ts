// An administrator of one broker and one kernel: signs whole requests with the admin key (one of one) and
// checks what comes back. A peer check alone never grants, provisions or revokes.
import { randomUUID } from 'node:crypto'
import { type AdminRequest, signAdminRequest } from '../protocol/administration.js'
import { type Clock, unixSeconds } from '../protocol/clock.js'
import { type Codec, decode, encode, isSameDocument } from '../protocol/codec.js'
import {
  CapabilityControlCommand,
  CapabilityStatusResponse,
  CredentialList,
  CredentialListRequest,
  CredentialMutation,
  checkMutation,
  SignedAdminMutationReceipt,
  verifyMutationReceipt,
} from '../protocol/credential-mutation.js'
import { CredentialRef } from '../protocol/destination.js'
import type { BrokerOperation } from '../protocol/envelope.js'
import { BrokerError, isBrokerError } from '../protocol/errors.js'
import { checkGrant, Grant } from '../protocol/grant.js'
import { grantRevocationId } from '../protocol/hold.js'
import { CapabilityReference, GrantReference } from '../protocol/kernel-rpc.js'
import { AcceptClock, Reconcile } from '../protocol/operation-rpc.js'
import type { SigningKey } from '../protocol/keys.js'
import { BrokerClient, readable } from './broker-client.js'
import type { BrokerPins, KernelPins } from './broker-pins.js'
import { KernelClient } from './kernel-client.js'

/** Long enough for one command and its retry, far shorter than what a stolen token would be good for. */
const TOKEN_LIFETIME_SECONDS = 60

export interface AdministratorOptions {
  readonly broker: BrokerPins
  readonly kernel: KernelPins
  readonly key: SigningKey
  /** The subject that both policies name. */
  readonly subject: string
  readonly clock: Clock
}

/** A credential to store; the secret stays the caller's to wipe. */
export type NewCredential = Pick<CredentialMutation, 'credential' | 'placement' | 'secret'>
export type StoredCredential = CredentialList['credentials'][number]

/** Close it when the command is done: the key is wiped. */
export class Administrator {
  readonly broker: BrokerClient
  readonly kernel: KernelClient
  readonly tenantScope: string
  readonly #options: AdministratorOptions

  constructor(options: AdministratorOptions) {
    this.broker = new BrokerClient(options.broker, options.clock)
    this.kernel = new KernelClient(options.kernel, options.clock)
    this.tenantScope = options.broker.tenantScope
    this.#options = options
  }

  /** Stores one credential version and verifies the broker's signed receipt for it. */
  provision(credential: NewCredential): Promise<SignedAdminMutationReceipt> {
    return this.#mutate({
      ...credential,
      mutation: 'provision',
      schema: 'chio.broker-credential-mutation.v2',
    })
  }

  /**
   * Disables one stored version: when this returns, no dispatch with it commits any more. Repeating it is safe.
   * @throws BrokerError `authorization_denied` when the broker stores no such version.
   */
  disable(credential: CredentialRef): Promise<SignedAdminMutationReceipt> {
    return this.#mutate({
      credential,
      mutation: 'disable',
      placement: null,
      schema: 'chio.broker-credential-mutation.v2',
      secret: new Uint8Array(0),
    })
  }

  async #mutate(mutation: CredentialMutation): Promise<SignedAdminMutationReceipt> {
    checkMutation(mutation)
    const operation = mutation.mutation
    const signed = this.#authorize(operation, encode(CredentialMutation, mutation))
    const answer = await this.broker.administer({ ...signed.request, operation }, signed.authorization)
    const receipt = readable(operation, () => decode(SignedAdminMutationReceipt, answer, 'mutation receipt'))
    return believed(() => {
      verifyMutationReceipt(receipt, this.broker.pins.receiptKey)
      checkReceiptOf(receipt, { ...signed.statement, tenantScope: this.tenantScope }, mutation)
      return receipt
    })
  }

  /** References and placements of all stored credentials; never a value. */
  async credentials(): Promise<readonly StoredCredential[]> {
    const answer = await this.#tellBroker('credential_list', CredentialListRequest, {
      schema: 'chio.broker-credential-list-request.v1',
    })
    return readable('credential_list', () => decode(CredentialList, answer, 'credential list')).credentials
  }

  /** Issues a grant in the kernel. */
  async issue(grant: Grant): Promise<void> {
    checkGrant(grant)
    await this.kernel.call(
      'issue_grant',
      grant,
      this.#authorize('issue_grant', encode(Grant, grant)).authorization,
    )
  }

  /** Puts a grant on the broker's own revocation list. @returns the list's commit index. */
  async revokeAtBroker(grantId: string, credential: CredentialRef): Promise<number> {
    const answer = await this.#tellBroker('revoke', CapabilityControlCommand, {
      capabilityId: grantId,
      credential,
      revocationId: grantRevocationId(grantId),
      schema: 'chio.broker-capability-control.v1',
    })
    return readable('revoke', () => decode(CapabilityStatusResponse, answer, 'revocation answer'))
      .authorityCommitIndex
  }

  /** Revokes a grant in the kernel. @returns the commit index of its revocation. */
  async revokeAtKernel(grantId: string): Promise<number> {
    const { authorization } = this.#authorize('revoke_grant', encode(GrantReference, { grantId }))
    return (await this.kernel.call('revoke_grant', { grantId }, authorization)).commitIndex
  }

  /** Ends a capability token in the kernel, known there or not, and everything that was delegated from it. */
  async revokeCapability(
    capabilityId: string,
  ): Promise<{ readonly commitIndex: number; readonly newlyRevoked: boolean }> {
    const payload = encode(CapabilityReference, { capabilityId })
    const { authorization } = this.#authorize('revoke_capability', payload)
    return this.kernel.call('revoke_capability', { capabilityId }, authorization)
  }

  /** States what a provider really did. @returns the index of the commit that keeps it. */
  async reconcile(stated: Reconcile): Promise<number> {
    const { authorization } = this.#authorize('reconcile', encode(Reconcile, stated))
    return (await this.kernel.call('reconcile', stated, authorization)).commitIndex
  }

  /** Says that the kernel's wall clock is right, as it was looked at. */
  async acceptClock({ highWaterUnixMs, wallUnixMs }: AcceptClock): Promise<number> {
    const accepted = { highWaterUnixMs, wallUnixMs }
    const { authorization } = this.#authorize('accept_clock', encode(AcceptClock, accepted))
    return (await this.kernel.call('accept_clock', accepted, authorization)).commitIndex
  }

  close(): void {
    this.#options.key.wipe()
    this.kernel.close()
  }

  #authorize(operation: string, payload: Uint8Array) {
    const request: AdminRequest = { operation, payload, tenantScope: this.tenantScope }
    const statement = {
      subject: this.#options.subject,
      requestId: randomUUID(),
      issuedAtUnixSeconds: unixSeconds(this.#options.clock),
      lifetimeSeconds: TOKEN_LIFETIME_SECONDS,
    }
    return { request, statement, authorization: signAdminRequest(request, statement, this.#options.key) }
  }

  async #tellBroker<T>(operation: BrokerOperation, codec: Codec<T>, document: T): Promise<Uint8Array> {
    const { request, authorization } = this.#authorize(operation, encode(codec, document))
    return this.broker.administer({ ...request, operation }, authorization)
  }
}

/** The broker accepted the change; a receipt that does not prove it leaves it unknown. */
function believed<T>(verify: () => T): T {
  try {
    return verify()
  } catch (cause) {
    if (!isBrokerError(cause)) throw cause
    throw new BrokerError(cause.code, cause.message, { outcome: 'unknown', cause })
  }
}

/** A receipt of another command proves nothing about this one, however well it is signed. */
function checkReceiptOf(
  { body }: SignedAdminMutationReceipt,
  told: { readonly requestId: string; readonly tenantScope: string },
  { credential, mutation }: CredentialMutation,
): void {
  const other =
    (body.requestId !== told.requestId && 'requestId') ||
    (body.tenantScope !== told.tenantScope && 'tenantScope') ||
    (body.operation !== mutation && 'operation') ||
    (!isSameDocument(CredentialRef, body.credential, credential) && 'credential')
  if (other === false) return
  throw new BrokerError(
    'authorization_denied',
    `mutation receipt ${other} refused: expected the one of this command, got another; see chio credential list`,
  )
}
