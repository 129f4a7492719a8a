// What the package exports as `chio-broker/executor`: the ledger of an executor that carries calls out for a kernel.
export type { Claim } from './claim.js'
export type { ClockCorrection } from './clock-correction.js'
export type { ExecutionTerms, ExecutorCallback } from './execute-once.js'
export { ExecutorLedger, type LedgerCounts, type LedgerOptions, type ProvisionTerms } from './ledger.js'
export { MAXIMUM_SEGMENT_OPERATIONS_COUNT } from './ledger-schema.js'
