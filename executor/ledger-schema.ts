// Owns the tables of an executor's ledger. A claim, a report, a segment is written once and never changed; each has its
// line in one history, whose digests form a chain.
// Must never: change without a higher userVersion: the text is compared at every opening.
// Source: the caller execution ledger (`CHCE`, version 1); the pin of its file lies in the store's own table.
import { appendOnly, type StoreSchema } from '../store/schema.js'

/** Operations that one segment may hold. */
export const MAXIMUM_SEGMENT_OPERATIONS_COUNT = 64

const schemaSql = `
CREATE TABLE caller_executor_configuration (singleton INTEGER PRIMARY KEY CHECK (singleton = 1),
  identity BLOB NOT NULL CHECK (length(identity) BETWEEN 1 AND 4096),
  max_operations INTEGER NOT NULL CHECK (max_operations BETWEEN 1 AND ${MAXIMUM_SEGMENT_OPERATIONS_COUNT})) STRICT;
${appendOnly('caller_executor_configuration')}
CREATE TABLE caller_executor_clock (singleton INTEGER PRIMARY KEY CHECK (singleton = 1), boot_id TEXT NOT NULL,
  anchor_unix_ms INTEGER NOT NULL, anchor_boot_ms INTEGER NOT NULL, high_water_unix_ms INTEGER NOT NULL) STRICT;
CREATE TABLE caller_executor_corrections (from_unix_ms INTEGER NOT NULL, to_unix_ms INTEGER NOT NULL,
  correction BLOB NOT NULL CHECK (length(correction) BETWEEN 1 AND 4096)) STRICT;
${appendOnly('caller_executor_corrections')}
CREATE TRIGGER caller_executor_clock_never_goes_back BEFORE UPDATE ON caller_executor_clock
  WHEN NEW.high_water_unix_ms < OLD.high_water_unix_ms AND NOT EXISTS (SELECT 1 FROM caller_executor_corrections
    WHERE from_unix_ms = OLD.high_water_unix_ms AND to_unix_ms = NEW.high_water_unix_ms)
  BEGIN SELECT RAISE(ABORT, 'caller_executor_clock never goes back'); END;
CREATE TRIGGER caller_executor_clock_refuses_delete BEFORE DELETE ON caller_executor_clock
  BEGIN SELECT RAISE(ABORT, 'caller_executor_clock is kept'); END;
CREATE TABLE caller_executor_claims (kernel_key TEXT NOT NULL CHECK (length(kernel_key) = 64),
  operation_id TEXT NOT NULL CHECK (length(operation_id) = 64),
  authorization_digest TEXT NOT NULL UNIQUE CHECK (length(authorization_digest) = 64),
  authorization BLOB NOT NULL CHECK (length(authorization) BETWEEN 1 AND 32768),
  claim_id TEXT NOT NULL UNIQUE CHECK (length(claim_id) = 36), claimed_at_unix_ms INTEGER NOT NULL,
  PRIMARY KEY (kernel_key, operation_id)) STRICT;
${appendOnly('caller_executor_claims')}
CREATE TABLE caller_executor_reports (kernel_key TEXT NOT NULL, operation_id TEXT NOT NULL,
  report BLOB NOT NULL CHECK (length(report) BETWEEN 1 AND 1048576),
  report_digest TEXT NOT NULL UNIQUE CHECK (length(report_digest) = 64), PRIMARY KEY (kernel_key, operation_id),
  FOREIGN KEY (kernel_key, operation_id) REFERENCES caller_executor_claims (kernel_key, operation_id)) STRICT;
${appendOnly('caller_executor_reports')}
CREATE TABLE caller_executor_segments (segment INTEGER PRIMARY KEY CHECK (segment > 1),
  header BLOB NOT NULL CHECK (length(header) BETWEEN 1 AND 4096)) STRICT;
${appendOnly('caller_executor_segments')}
CREATE TABLE caller_executor_history (sequence INTEGER PRIMARY KEY CHECK (sequence > 0),
  kind TEXT NOT NULL CHECK (kind IN ('claim', 'report', 'segment', 'clock')), content_digest TEXT NOT NULL,
  digest TEXT NOT NULL UNIQUE) STRICT;
${appendOnly('caller_executor_history')}`

export const LEDGER_SCHEMA: StoreSchema = { applicationId: 0x43_48_43_45, schemaSql, userVersion: 1 }
