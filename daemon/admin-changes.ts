// Owns the changes that administrators may ask for, each as: read the payload, then apply it inside the commit that
// spends the approvals.
// Must never: keep a secret longer than its sealing takes.
// Source: the broker protocol, section 5.18.
import type { AdminOperation } from '../protocol/administration.js'
import { unixSeconds } from '../protocol/clock.js'
import { decode, encode } from '../protocol/codec.js'
import {
  type AdminMutationReceiptBody,
  CapabilityControlCommand,
  CapabilityStatusResponse,
  checkMutation,
  CredentialList,
  CredentialListRequest,
  CredentialMutation,
  CredentialMutationV1,
  type Mutation,
  SignedAdminMutationReceipt,
  signMutationReceipt,
} from '../protocol/credential-mutation.js'
import { BrokerError } from '../protocol/errors.js'
import type { Transaction } from '../store/transaction.js'
import type { BrokerParts } from './parts.js'
import { assertInjectable } from './provider/request-writer.js'
import { revoke } from './revocations.js'

export interface ReadChange {
  /** Makes the change. @returns the answer, which is stored with it. */
  apply(parts: BrokerParts, tx: Transaction, operation: AdminOperation): Uint8Array
  wipe(): void
}

/** @throws BrokerError `invalid_request` when the payload is none of this operation. */
export type AdminChange = (payload: Uint8Array) => ReadChange

export const ADMIN_CHANGES: Readonly<Record<string, AdminChange>> = {
  credential_list: readList,
  disable: readDisabling,
  provision: readProvision,
  revoke: readRevocation,
}

function readProvision(payload: Uint8Array): ReadChange {
  const mutation = decodeMutation(payload, 'provision')
  try {
    checkMutation(mutation)
    assertInjectable(mutation.secret)
  } catch (error) {
    mutation.secret.fill(0)
    throw error
  }
  return {
    apply(parts, tx, operation) {
      const nowUnixMs = parts.clock.unixMs()
      parts.credentials.provision(tx, mutation, nowUnixMs)
      return mutationReceipt(parts, mutation, operation, Math.floor(nowUnixMs / 1000))
    },
    wipe: () => mutation.secret.fill(0),
  }
}

/** From this commit on no dispatch of that version commits: the dispatch transaction reads the same row. */
function readDisabling(payload: Uint8Array): ReadChange {
  const mutation = decodeMutation(payload, 'disable')
  try {
    checkMutation(mutation)
  } catch (error) {
    mutation.secret.fill(0)
    throw error
  }
  return {
    apply(parts, tx, operation) {
      parts.credentials.disable(tx, mutation.credential)
      return mutationReceipt(parts, mutation, operation, unixSeconds(parts.clock))
    },
    wipe: nothing,
  }
}

/** @throws BrokerError `invalid_request` when it is none, or one of another kind than its operation. */
function decodeMutation(payload: Uint8Array, kind: Mutation): CredentialMutation {
  const mutation = decodeAnyVersion(payload)
  if (mutation.mutation === kind) return mutation
  mutation.secret.fill(0)
  throw new BrokerError(
    'invalid_request',
    `credential mutation refused: expected ${kind}, as its operation, got ${mutation.mutation}`,
  )
}

/** The first version has no placement; where a secret is stored it means bearer. */
function decodeAnyVersion(payload: Uint8Array): CredentialMutation {
  // A view, not a copy: the payload holds the secret and is wiped by whoever owns it.
  const bytes = Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength)
  const isFirst = bytes.includes('"schema":"chio.broker-credential-mutation.v1"')
  if (!isFirst) return decode(CredentialMutation, payload, 'credential mutation')
  const { credential, mutation, secret } = decode(CredentialMutationV1, payload, 'credential mutation')
  const carries = mutation === 'provision' || mutation === 'rotate'
  const placement = carries ? ({ kind: 'bearer_authorization' } as const) : null
  return { credential, mutation, placement, schema: 'chio.broker-credential-mutation.v2', secret }
}

function mutationReceipt(
  parts: BrokerParts,
  mutation: CredentialMutation,
  operation: AdminOperation,
  completedAtUnixSeconds: number,
): Uint8Array {
  const body: AdminMutationReceiptBody = {
    authorizationDigest: operation.authorizationDigest,
    completedAtUnixSeconds,
    credential: mutation.credential,
    intentDigest: operation.intentDigest,
    operation: mutation.mutation,
    operationId: operation.operationId,
    outcome: 'applied',
    requestId: operation.requestId,
    schema: 'chio.broker-admin-mutation-receipt.v1',
    tenantScope: parts.config.tenantScope,
  }
  return encode(SignedAdminMutationReceipt, signMutationReceipt(body, parts.receiptKey))
}

function readList(payload: Uint8Array): ReadChange {
  decode(CredentialListRequest, payload, 'credential list request')
  return {
    apply: (parts, tx) =>
      encode(CredentialList, {
        credentials: parts.credentials.list(tx),
        schema: 'chio.broker-credential-list.v1',
      }),
    wipe: nothing,
  }
}

function readRevocation(payload: Uint8Array): ReadChange {
  const command = decode(CapabilityControlCommand, payload, 'capability control command')
  return {
    apply(parts, tx, operation) {
      const nowUnixMs = parts.clock.unixMs()
      return encode(CapabilityStatusResponse, {
        authorityCommitIndex: revoke(tx, command, operation.authorizationDigest, nowUnixMs),
        capabilityId: command.capabilityId,
        observedAtUnixSeconds: Math.max(1, Math.floor(nowUnixMs / 1000)),
        revocationId: command.revocationId,
        revoked: true,
        schema: 'chio.broker-capability-status.v1',
      })
    },
    wipe: nothing,
  }
}

function nothing(): void {
  // No secret was read.
}
