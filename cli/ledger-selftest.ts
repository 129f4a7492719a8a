// chio selftest ledger: what an executor's ledger gives back, refuses and does not know, a line each.
import { runLedgerChecks } from '../selftest/ledger.js'
import type { CommonOptions } from './output.js'
import { type SelftestResult, tell } from './selftest-result.js'

/** Runs the three checks. */
export async function ledgerSelftest(): Promise<SelftestResult> {
  const checks = await runLedgerChecks()
  return {
    document: { schema: 'chio.selftest-ledger.v1', checks },
    lines: checks.map(({ name, proved }) => `${name} ${proved}`),
    ok: checks.every(({ ok }) => ok),
  }
}

/** Exit 1 when any fails. */
export async function runLedgerSelftest(options: CommonOptions): Promise<void> {
  tell(options, await ledgerSelftest())
}
