// Owns: the kernel's store as one schema, joined from the tables of its parts.
// Must never: change without a higher userVersion: the text is compared at every opening.
// Source: sqlite.org/stricttables.html, PRAGMA application_id.
import type { StoreSchema } from '../../store/schema.js'
import { ADMINISTRATION_SQL } from './administration-tables.js'
import { BUDGET_SQL } from './budget-tables.js'
import { APPROVAL_SQL } from './approval-tables.js'
import { CAPABILITY_SQL } from './capability-tables.js'
import { CLOCK_SQL } from './clock-row.js'
import { CONTEXT_SQL } from './context-tables.js'
import { DELIVERY_SQL } from './delivery-tables.js'
import { GRANT_SQL } from './grant-tables.js'
import { HOLD_SQL } from './hold-table.js'
import { NONCE_SQL } from './nonce-tables.js'
import { OPERATION_INDEX_SQL } from './operation-index.js'
import { OPERATION_SQL } from './operation-tables.js'
import { OUTCOME_SQL } from './outcome-tables.js'
import { OWNER_SQL } from './owner-table.js'
import { POSSESSION_SQL } from './possession-tables.js'
import { RECEIPT_SQL } from './receipt-tables.js'
import { RECONCILIATION_SQL } from './reconciliation-table.js'

export const KERNEL_STORE_SCHEMA: StoreSchema = {
  applicationId: 0x43_48_4b_01,
  userVersion: 4,
  schemaSql: [
    OWNER_SQL,
    CLOCK_SQL,
    GRANT_SQL,
    OPERATION_SQL,
    OPERATION_INDEX_SQL,
    RECONCILIATION_SQL,
    HOLD_SQL,
    NONCE_SQL,
    APPROVAL_SQL,
    ADMINISTRATION_SQL,
    BUDGET_SQL,
    OUTCOME_SQL,
    CAPABILITY_SQL,
    CONTEXT_SQL,
    POSSESSION_SQL,
    DELIVERY_SQL,
    RECEIPT_SQL,
  ].join(''),
}
