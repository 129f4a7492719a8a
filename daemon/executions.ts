// Owns how often each quota key was executed, counted by the broker itself: a kernel that forgot, or was put back
// from a copy, cannot make a grant run more often than it says.
// Must never: give a count back. It is spent with the dispatch commit, whatever the outcome.
import type { Quota } from '../protocol/registration.js'
import type { Transaction } from '../store/transaction.js'
import { Refused } from './refused.js'

const SPEND_SQL = `INSERT INTO executions (key_id, executions) VALUES (?, 1)
  ON CONFLICT (key_id) DO UPDATE SET executions = executions + 1 WHERE executions < ?`

/** Counts one execution under every key. @throws Refused `quota_spent`, and then none is counted. */
export function spendExecutions(tx: Transaction, quotas: readonly Quota[]): void {
  for (const { keyId, maximumExecutions } of quotas) {
    if (tx.run(SPEND_SQL, keyId, maximumExecutions) === 1) continue
    throw new Refused('quota_spent', `all ${maximumExecutions} used under one of them`)
  }
}
