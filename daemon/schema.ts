// Owns the tables of broker.db: attempts, executions, receipts, responses, credentials, revocations and what
// administrators spent. One file, so that an end, its receipt and its response are one commit.
// Must never: let a row of history be changed, or an attempt move along an edge that the state table lacks.
// Source: the broker protocol's attempt table and state machine (section 7); sqlite.org/lang_createtrigger.html.
import { ATTEMPT_MOVES, ATTEMPT_STATES } from '../protocol/attempt-states.js'
import { appendOnly, type StoreSchema } from '../store/schema.js'

const quoted = (words: readonly string[]): string => words.map(word => `'${word}'`).join(', ')

/** The state table once more, in the store itself: code above it may be wrong, the row stays right. */
function permittedMoves(): string {
  const moves = Object.entries(ATTEMPT_MOVES).filter(([, targets]) => targets.length > 0)
  return moves
    .map(([from, to]) => `(OLD.state = '${from}' AND NEW.state IN (${quoted(to)}))`)
    .join('\n    OR ')
}

/**
 * States in which a dead process can leave an attempt, as the index of open attempts has them: SQLite uses it only for a
 * query in these very words. Source: sqlite.org/partialindex.html section 3.
 */
export const OPEN_ATTEMPTS = "state IN ('registered', 'prepared', 'held', 'captured', 'dispatch_committed')"

const ATTEMPTS_SQL = `
CREATE TABLE attempts (
  attempt_id TEXT PRIMARY KEY,
  operation_id TEXT NOT NULL UNIQUE,
  hold_id TEXT NOT NULL,
  invocation_id TEXT NOT NULL,
  parent_capability_id TEXT NOT NULL,
  broker_capability_id TEXT NOT NULL,
  capability_digest TEXT NOT NULL,
  request_digest TEXT NOT NULL,
  request_canonical_digest TEXT NOT NULL,
  registration_digest TEXT NOT NULL,
  proof_key_id TEXT NOT NULL,
  proof_nonce TEXT NOT NULL,
  proof_issued_at_unix_seconds INTEGER NOT NULL CHECK (proof_issued_at_unix_seconds >= 0),
  registered_at_unix_ms INTEGER NOT NULL CHECK (registered_at_unix_ms > 0),
  state TEXT NOT NULL CHECK (state IN (${quoted(ATTEMPT_STATES)})),
  version INTEGER NOT NULL CHECK (version >= 1),
  dispatch_committed_at_unix_ms INTEGER,
  ended_at_unix_ms INTEGER,
  reason TEXT,
  receipt_reference TEXT,
  expected_frame_sha256 TEXT,
  submitted_frame_sha256 TEXT,
  submitted_frame_bytes INTEGER,
  revocation_set_digest TEXT,
  authority_commit_index INTEGER,
  budget_commit_index INTEGER,
  revocation_commit_index INTEGER,
  leader_epoch INTEGER,
  UNIQUE (proof_key_id, proof_nonce)
) STRICT;
CREATE INDEX attempts_open ON attempts (state)
  WHERE ${OPEN_ATTEMPTS};
CREATE TRIGGER attempts_begin_registered BEFORE INSERT ON attempts
  WHEN NEW.state <> 'registered' OR NEW.version <> 1
  BEGIN SELECT RAISE(ABORT, 'an attempt begins registered'); END;
CREATE TRIGGER attempts_move BEFORE UPDATE ON attempts
  WHEN NEW.version <> OLD.version + 1 OR NEW.attempt_id <> OLD.attempt_id OR NOT (
    ${permittedMoves()})
  BEGIN SELECT RAISE(ABORT, 'an attempt moves along its state table'); END;
CREATE TRIGGER attempts_refuse_delete BEFORE DELETE ON attempts
  BEGIN SELECT RAISE(ABORT, 'attempts are kept'); END;
`

const RECORDS_SQL = `
CREATE TABLE executions (
  key_id TEXT PRIMARY KEY,
  executions INTEGER NOT NULL CHECK (executions >= 1)
) STRICT;
CREATE TRIGGER executions_only_grow BEFORE UPDATE ON executions
  WHEN NEW.executions <> OLD.executions + 1 OR NEW.key_id <> OLD.key_id
  BEGIN SELECT RAISE(ABORT, 'executions are counted one by one'); END;
CREATE TRIGGER executions_refuse_delete BEFORE DELETE ON executions
  BEGIN SELECT RAISE(ABORT, 'executions are kept'); END;

CREATE TABLE receipts (
  reference TEXT PRIMARY KEY,
  attempt_id TEXT NOT NULL REFERENCES attempts (attempt_id),
  kind TEXT NOT NULL CHECK (kind IN ('execution', 'failure')),
  receipt BLOB NOT NULL,
  recorded_at_unix_ms INTEGER NOT NULL
) STRICT;
CREATE INDEX receipts_of_attempt ON receipts (attempt_id);
${appendOnly('receipts')}
CREATE TABLE responses (
  attempt_id TEXT PRIMARY KEY REFERENCES attempts (attempt_id),
  sealed BLOB NOT NULL
) STRICT;
${appendOnly('responses')}
`

const CUSTODY_SQL = `
CREATE TABLE credentials (
  lookup BLOB PRIMARY KEY CHECK (length(lookup) = 32),
  sealed_reference BLOB NOT NULL,
  sealed_secret BLOB NOT NULL,
  enabled INTEGER NOT NULL CHECK (enabled IN (0, 1)),
  provisioned_at_unix_ms INTEGER NOT NULL
) STRICT;
CREATE TRIGGER credentials_are_immutable
  BEFORE UPDATE OF lookup, sealed_reference, sealed_secret, provisioned_at_unix_ms ON credentials
  BEGIN SELECT RAISE(ABORT, 'a credential version is never replaced'); END;

CREATE TABLE revocations (
  commit_index INTEGER PRIMARY KEY,
  parent_capability_id TEXT NOT NULL UNIQUE,
  revocation_id TEXT NOT NULL,
  authorization_digest TEXT NOT NULL,
  revoked_at_unix_ms INTEGER NOT NULL
) STRICT;
${appendOnly('revocations')}
CREATE TABLE admin_operations (
  authorization_digest TEXT PRIMARY KEY,
  intent_digest TEXT NOT NULL,
  operation_id TEXT NOT NULL UNIQUE,
  operation TEXT NOT NULL,
  request_id TEXT NOT NULL,
  answer BLOB NOT NULL,
  applied_at_unix_ms INTEGER NOT NULL
) STRICT;
${appendOnly('admin_operations')}
CREATE TABLE admin_approvals (
  token_digest TEXT PRIMARY KEY,
  approval_id TEXT NOT NULL UNIQUE,
  authorization_digest TEXT NOT NULL REFERENCES admin_operations (authorization_digest)
) STRICT;
${appendOnly('admin_approvals')}
`

export const BROKER_SCHEMA: StoreSchema = {
  applicationId: 0x4368_4272,
  userVersion: 2,
  schemaSql: `${ATTEMPTS_SQL}${RECORDS_SQL}${CUSTODY_SQL}`,
}
