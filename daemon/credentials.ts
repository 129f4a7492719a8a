// Owns the custody of stored credentials: sealed under a key of their own version, found by a keyed digest.
// Must never: decrypt a secret before the dispatch commit, replace a version, or say more of one than reference,
// placement and whether it is enabled.
// Source: the broker protocol's credential custody, section 15; RFC 5869, RFC 8439.
import type { CredentialList, CredentialMutation } from '../protocol/credential-mutation.js'
import { decode, encode, identifier, type Infer, object } from '../protocol/codec.js'
import { CredentialRef } from '../protocol/destination.js'
import { wipeableBytes } from '../protocol/digest.js'
import { BrokerError } from '../protocol/errors.js'
import { CredentialPlacement } from '../protocol/placement.js'
import type { Transaction } from '../store/transaction.js'
import type { RowReader } from './attempts.js'
import { deriveKey, keyedDigest, seal, unseal } from './sealed-box.js'
import { Refused } from './refused.js'

const INDEX_PURPOSE = 'chio.secret-broker.index.v1'
const REFERENCE_PURPOSE = 'chio.secret-broker.reference-key.v1'
const SECRET_PURPOSE = 'chio.secret-broker.credential-key.v1'

/** Everything that a stored secret belongs to: changed in any part, it does not decrypt. */
const WholeReference = object({
  credential: CredentialRef,
  placement: CredentialPlacement,
  tenantScope: identifier(),
})
type WholeReference = Infer<typeof WholeReference>

export interface StoredCredential {
  readonly credential: CredentialRef
  readonly placement: CredentialPlacement
  readonly enabled: boolean
  readonly provisionedAtUnixMs: number
}

interface CredentialRow {
  readonly lookup: Uint8Array
  readonly sealedReference: Uint8Array
  readonly enabled: number
  readonly provisionedAtUnixMs: number
}

const FIELDS = `lookup, sealed_reference AS sealedReference, enabled,
  provisioned_at_unix_ms AS provisionedAtUnixMs`
const FIND_SQL = `SELECT ${FIELDS} FROM credentials WHERE lookup = ?`
const LIST_SQL = `SELECT ${FIELDS} FROM credentials ORDER BY provisioned_at_unix_ms, lookup`
const ANY_SQL = `SELECT ${FIELDS} FROM credentials LIMIT 1`
const ENABLED_SQL = 'SELECT enabled FROM credentials WHERE lookup = ?'
const SECRET_SQL = 'SELECT sealed_secret AS sealedSecret FROM credentials WHERE lookup = ?'
const DISABLE_SQL = 'UPDATE credentials SET enabled = 0 WHERE lookup = ?'
const INSERT_SQL = `INSERT INTO credentials (lookup, sealed_reference, sealed_secret, enabled,
  provisioned_at_unix_ms) VALUES (?, ?, ?, 1, ?)`

export class CredentialVault {
  readonly #tenantScope: string
  readonly #masterKey: Uint8Array
  readonly #indexKey: Uint8Array
  #decryptions = 0

  /** Copies the master key; the caller wipes its own. */
  constructor(masterKey: Uint8Array, tenantScope: string) {
    this.#tenantScope = tenantScope
    this.#masterKey = wipeableBytes(masterKey.length)
    this.#masterKey.set(masterKey)
    this.#indexKey = deriveKey(masterKey, INDEX_PURPOSE, new Uint8Array(0))
  }

  /** Secrets decrypted since the daemon started. */
  get decryptions(): number {
    return this.#decryptions
  }

  /**
   * Refuses another master key before anything is served: with it every execution would be spent on a credential
   * that does not open, and new ones would be sealed under a key of their own.
   * @throws BrokerError `custody`.
   */
  assertMasterKey(rows: RowReader): void {
    const row = rows.get<CredentialRow>(ANY_SQL)
    if (row === undefined) return
    try {
      this.#stored(row)
    } catch (cause) {
      throw new BrokerError(
        'custody',
        'master key refused: expected the one under which the credentials of this store were sealed, got another; restore the key',
        { cause },
      )
    }
  }

  /** Reads reference and placement; the secret stays sealed. */
  find(rows: RowReader, credential: CredentialRef): StoredCredential | undefined {
    const row = rows.get<CredentialRow>(FIND_SQL, this.#lookup(credential))
    return row === undefined ? undefined : this.#stored(row)
  }

  list(tx: Transaction): CredentialList['credentials'] {
    return tx.all<CredentialRow>(LIST_SQL).map(row => this.#stored(row))
  }

  /** @throws Refused `credential_unavailable`. */
  assertEnabled(rows: RowReader, credential: CredentialRef): void {
    const row = rows.get<{ enabled: number }>(ENABLED_SQL, this.#lookup(credential))
    if (row?.enabled === 1) return
    throw new Refused('credential_unavailable', row === undefined ? 'no such version' : 'a disabled version')
  }

  /** Stores a new version. @throws Refused `credential_exists`. */
  provision(tx: Transaction, mutation: CredentialMutation, nowUnixMs: number): void {
    const { credential, placement, secret } = mutation
    if (placement === null) throw new TypeError('"placement" expected one to provision, got null')
    const lookup = this.#lookup(credential)
    if (tx.get(ENABLED_SQL, lookup) !== undefined) {
      throw new Refused('credential_exists', `version ${credential.version} a second time`)
    }
    const reference = encode(WholeReference, { credential, placement, tenantScope: this.#tenantScope })
    const secretKey = deriveKey(this.#masterKey, SECRET_PURPOSE, lookup)
    const referenceKey = deriveKey(this.#masterKey, REFERENCE_PURPOSE, lookup)
    tx.run(
      INSERT_SQL,
      lookup,
      seal(referenceKey, reference, lookup),
      seal(secretKey, secret, reference),
      nowUnixMs,
    )
    secretKey.fill(0)
    referenceKey.fill(0)
  }

  /** Disables a version for good; a second time changes nothing. @throws Refused `credential_unknown`. */
  disable(tx: Transaction, credential: CredentialRef): void {
    const lookup = this.#lookup(credential)
    if (tx.get(ENABLED_SQL, lookup) === undefined) throw new Refused('credential_unknown', 'none')
    tx.run(DISABLE_SQL, lookup)
  }

  /**
   * Decrypts a secret; the caller wipes it. Called after the dispatch commit and never before.
   * @throws BrokerError `custody`.
   */
  openSecret(rows: RowReader, stored: StoredCredential): Uint8Array {
    this.#decryptions += 1
    const { credential, placement } = stored
    const lookup = this.#lookup(credential)
    const row = rows.get<{ sealedSecret: Uint8Array }>(SECRET_SQL, lookup)
    if (row === undefined)
      throw new BrokerError('custody', 'credential refused: expected its sealed bytes, got none')
    const key = deriveKey(this.#masterKey, SECRET_PURPOSE, lookup)
    try {
      const reference = encode(WholeReference, { credential, placement, tenantScope: this.#tenantScope })
      return unseal(key, row.sealedSecret, reference)
    } finally {
      key.fill(0)
    }
  }

  wipe(): void {
    this.#masterKey.fill(0)
    this.#indexKey.fill(0)
  }

  #stored(row: CredentialRow): StoredCredential {
    const key = deriveKey(this.#masterKey, REFERENCE_PURPOSE, row.lookup)
    const reference: WholeReference = decode(
      WholeReference,
      unseal(key, row.sealedReference, row.lookup),
      'stored credential reference',
    )
    const { credential, placement } = reference
    return { credential, placement, enabled: row.enabled === 1, provisionedAtUnixMs: row.provisionedAtUnixMs }
  }

  #lookup({ provider, credentialId, version }: CredentialRef): Uint8Array {
    const text = Buffer.from(`${INDEX_PURPOSE}\0${this.#tenantScope}\0${provider}\0${credentialId}\0`, 'utf8')
    const versionBytes = Buffer.alloc(8)
    versionBytes.writeBigUInt64BE(BigInt(version))
    return keyedDigest(this.#indexKey, Buffer.concat([text, versionBytes]))
  }
}
