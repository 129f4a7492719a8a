// chio selftest broker: runs the shipped cases on this machine and prints what each proved; all: every selftest in turn.
import { BROKER_CASES, runBrokerCases } from '../selftest/broker.js'
import { BrokerError } from '../protocol/errors.js'
import { cageSelftest } from './cage-selftest.js'
import { ledgerSelftest } from './ledger-selftest.js'
import { type CommonOptions, given, milliseconds } from './output.js'
import { type SelftestResult, tell } from './selftest-result.js'

/** Runs all cases, or one. Exit 1 when any fails. */
export async function runSelftest(options: CommonOptions & { readonly case?: string }): Promise<void> {
  if (options.case !== undefined && !BROKER_CASES.includes(options.case)) {
    throw new BrokerError(
      'usage',
      `--case refused: expected one of ${BROKER_CASES.join(', ')}, got ${given(options.case)}`,
    )
  }
  tell(options, await brokerSelftest(options.case))
}

async function brokerSelftest(only?: string): Promise<SelftestResult> {
  const cases = await runBrokerCases(only)
  const lines = cases.map(
    ({ name, ok, ms, proved }) => `${ok ? 'ok  ' : 'FAIL'}  ${name}: ${proved} (${milliseconds(ms)})`,
  )
  return { document: { schema: 'chio.selftest.v1', cases }, lines, ok: cases.every(({ ok }) => ok) }
}

/** Runs cage, broker and ledger, one after the other. Exit 1 when anything of them fails. */
export async function runAllSelftests(options: CommonOptions): Promise<void> {
  const cage = await cageSelftest()
  const broker = await brokerSelftest()
  const ledger = await ledgerSelftest()
  tell(options, {
    document: {
      schema: 'chio.selftest-all.v1',
      cage: cage.document,
      broker: broker.document,
      ledger: ledger.document,
    },
    lines: [...cage.lines, '', ...broker.lines, '', ...ledger.lines],
    ok: cage.ok && broker.ok && ledger.ok,
  })
}
