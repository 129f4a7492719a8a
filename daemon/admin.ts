// Owns what administrators ask of the broker: provision, disable, list, revoke. Approvals are spent and the change is made in
// one commit; an exact retry gets the stored answer, also after its approvals expired.
// Must never: act on a peer check alone, or spend an approval on a change that was not made.
// Source: the broker protocol, section 5.18 (governed policy).
import {
  type AdminAuthorization,
  type AdminOperation,
  type AdminRequest,
  decodeAdminAuthorization,
  nameAdminOperation,
  verifyAdminAuthorization,
} from '../protocol/administration.js'
import { tokenDigest } from '../protocol/approval-token.js'
import { unixSeconds } from '../protocol/clock.js'
import type { Transaction } from '../store/transaction.js'
import type { RowReader } from './attempts.js'
import { ADMIN_CHANGES, type AdminChange } from './admin-changes.js'
import type { BrokerExchange, BrokerParts } from './parts.js'
import { Refused, refusing } from './refused.js'

interface SpentRow {
  readonly intentDigest: string
  readonly answer: Uint8Array
}

const SPENT_SQL =
  'SELECT intent_digest AS intentDigest, answer FROM admin_operations WHERE authorization_digest = ?'
const INSERT_OPERATION_SQL = `INSERT INTO admin_operations (authorization_digest, intent_digest, operation_id,
  operation, request_id, answer, applied_at_unix_ms) VALUES (?, ?, ?, ?, ?, ?, ?)`
const INSERT_APPROVAL_SQL =
  'INSERT INTO admin_approvals (token_digest, approval_id, authorization_digest) VALUES (?, ?, ?)'
const SPENT_APPROVAL_SQL =
  'SELECT authorization_digest AS authorizationDigest FROM admin_approvals WHERE token_digest = ? OR approval_id = ?'

export async function administer(parts: BrokerParts, exchange: BrokerExchange): Promise<Uint8Array> {
  const { request, connection } = exchange
  const change = ADMIN_CHANGES[request.operation]
  if (change === undefined) throw new TypeError(`administration: expected an operation of its table`)
  const authorization = refusing('payload_malformed', () => decodeAdminAuthorization(request.authorization))
  const asked: AdminRequest = request
  const names = nameAdminOperation(authorization, asked)
  const spent = answerOf(parts.store, names)
  if (spent !== undefined) return spent
  const operation = refusing('administrator_refused', () =>
    verifyAdminAuthorization(authorization, asked, policyOf(parts), unixSeconds(parts.clock)),
  )
  connection.authenticated()
  return apply(parts, { authorization, operation, request: asked, change })
}

interface ApprovedChange {
  readonly authorization: AdminAuthorization
  readonly operation: AdminOperation
  readonly request: AdminRequest
  readonly change: AdminChange
}

async function apply(parts: BrokerParts, approved: ApprovedChange): Promise<Uint8Array> {
  const { authorization, operation, request, change } = approved
  const prepared = refusing('payload_malformed', () => change(request.payload))
  try {
    const answer = await parts.store.transaction('administered', tx => {
      const raced = answerOf(tx, operation)
      if (raced !== undefined) return raced
      assertUnspent(tx, authorization)
      const made = prepared.apply(parts, tx, operation)
      spend(tx, approved, made, parts.clock.unixMs())
      return made
    })
    const { requestId, operationId } = operation
    parts.log.info({ operation: request.operation, requestId, operationId }, 'administrator request applied')
    return answer
  } finally {
    prepared.wipe()
  }
}

function policyOf({ config }: BrokerParts) {
  return config.administrators
}

/** @throws Refused when this very authorization was spent on another intent. */
function answerOf(
  rows: RowReader,
  names: { readonly authorizationDigest: string; readonly intentDigest: string },
): Uint8Array | undefined {
  const row = rows.get<SpentRow>(SPENT_SQL, names.authorizationDigest)
  if (row === undefined) return undefined
  if (row.intentDigest !== names.intentDigest) throw new Refused('administrator_conflict', 'another intent')
  return row.answer
}

function assertUnspent(tx: Transaction, { approvals }: AdminAuthorization): void {
  const isSpent = approvals.some(
    token => tx.get(SPENT_APPROVAL_SQL, tokenDigest(token), token.id) !== undefined,
  )
  if (isSpent) throw new Refused('administrator_conflict', 'an approval that was spent')
}

function spend(tx: Transaction, approved: ApprovedChange, answer: Uint8Array, nowUnixMs: number): void {
  const { authorization, operation, request } = approved
  const { authorizationDigest, intentDigest, operationId, requestId } = operation
  tx.run(
    INSERT_OPERATION_SQL,
    authorizationDigest,
    intentDigest,
    operationId,
    request.operation,
    requestId,
    answer,
    nowUnixMs,
  )
  for (const token of authorization.approvals) {
    tx.run(INSERT_APPROVAL_SQL, tokenDigest(token), token.id, authorizationDigest)
  }
}
