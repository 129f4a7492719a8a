// Owns: reading the rows of the kernel's store back into documents.
// Must never: trust a row that does not decode: it is a fault of the store, not of whoever asked.
import type { AdmissionState } from '../protocol/admission-states.js'
import { type Codec, decode } from '../protocol/codec.js'
import { BrokerError } from '../protocol/errors.js'
import { Grant } from '../protocol/grant.js'
import { BrokerRecord } from '../protocol/kernel-rpc.js'
import { AttemptRegistration } from '../protocol/registration.js'
import type { AdminOutcome } from './admission-store.js'
import { type AdmissionOperation, DispatchCommit, Reservation, type StoredGrant } from './operation.js'

export interface OperationRow {
  readonly operation_id: string
  readonly state: AdmissionState
  readonly version: number
  readonly created_at_unix_ms: number
  readonly updated_at_unix_ms: number
  readonly reservation: Uint8Array
  readonly registration: Uint8Array | null
  readonly dispatch_commit: Uint8Array | null
  readonly record: Uint8Array | null
  readonly last_error: string | null
}

export interface GrantRow {
  readonly document: Uint8Array
  readonly digest: string
  readonly held: number
  readonly captured: number
  readonly revoked: number
  readonly commit_index: number
}

export interface AdminRow {
  readonly commitIndex: number
  readonly grantId: string
  readonly newlyRevoked: number
  readonly intentDigest: string
}

/** Who holds the store: fixed at its opening, compared by every write. */
export interface Owner {
  readonly ownerEpoch: number
  readonly leaseId: string
}

/** The store's counters, as the open transaction sees them. */
export interface Head {
  readonly commitIndex: number
  readonly revocationIndex: number
  readonly liveNonces: number
}

/** What one move adds to an operation; a milestone's document is set once. */
export interface OperationChange {
  readonly to: AdmissionState
  readonly version: number
  readonly registration: Uint8Array | null
  readonly commit: Uint8Array | null
  readonly record: Uint8Array | null
  readonly lastError: string | null
}

export interface HistoryEntry {
  readonly operationId: string
  readonly version: number
  readonly from: AdmissionState | null
  readonly to: AdmissionState
  readonly cause: string
}

/** @throws BrokerError `conflict` when the approvals were consumed for another request. */
export function adminOutcomeOf(row: AdminRow | undefined, intentDigest: string): AdminOutcome | undefined {
  if (row === undefined) return undefined
  const { commitIndex, grantId, newlyRevoked } = row
  if (row.intentDigest === intentDigest) return { commitIndex, grantId, newlyRevoked: newlyRevoked === 1 }
  throw new BrokerError(
    'conflict',
    'approvals refused: expected the request for which they were consumed, got another; approve it anew',
  )
}

export function optional<R, T>(read: (row: R) => T, row: R | undefined): T | undefined {
  return row === undefined ? undefined : read(row)
}

/** Operations under way: each is read up to eight times between its reserve and its end. */
const MAXIMUM_REMEMBERED = 256

/**
 * Documents of operations as they were last read, oldest first. A row is taken from the store every time; only where
 * its bytes are still the same is what they say not read out of them anew.
 */
class RememberedDocuments<T> {
  readonly #codec: Codec<T>
  readonly #known = new Map<string, { readonly bytes: Uint8Array; readonly document: T }>()

  constructor(codec: Codec<T>) {
    this.#codec = codec
  }

  read(operationId: string, bytes: Uint8Array): T {
    const known = this.#known.get(operationId)
    if (known !== undefined && Buffer.compare(known.bytes, bytes) === 0) return known.document
    const document = read(this.#codec, bytes)
    if (this.#known.size >= MAXIMUM_REMEMBERED) this.#known.delete(this.#known.keys().next().value as string)
    this.#known.set(operationId, { bytes, document })
    return document
  }

  readOptional(operationId: string, bytes: Uint8Array | null): T | null {
    return bytes === null ? null : this.read(operationId, bytes)
  }
}

const reservations = new RememberedDocuments(Reservation)
const registrations = new RememberedDocuments(AttemptRegistration)
const commits = new RememberedDocuments(DispatchCommit)

export function operationOf(row: OperationRow): AdmissionOperation {
  const { operation_id: operationId } = row
  return {
    operationId,
    state: row.state,
    version: row.version,
    createdAtUnixMs: row.created_at_unix_ms,
    updatedAtUnixMs: row.updated_at_unix_ms,
    reservation: reservations.read(operationId, row.reservation),
    registration: registrations.readOptional(operationId, row.registration),
    commit: commits.readOptional(operationId, row.dispatch_commit),
    record: readOptional(BrokerRecord, row.record),
    lastError: row.last_error,
  }
}

export function grantOf(row: GrantRow): StoredGrant {
  return {
    grant: read(Grant, row.document),
    digest: row.digest,
    held: row.held,
    captured: row.captured,
    revoked: row.revoked === 1,
    commitIndex: row.commit_index,
  }
}

function readOptional<T>(codec: Codec<T>, bytes: Uint8Array | null): T | null {
  return bytes === null ? null : read(codec, bytes)
}

function read<T>(codec: Codec<T>, bytes: Uint8Array): T {
  try {
    return decode(codec, bytes, 'stored document')
  } catch (cause) {
    throw new BrokerError('storage', 'stored document refused: expected one that this kernel wrote', {
      cause,
    })
  }
}
