// chio selftest broker: runs the shipped cases on this machine and prints what each proved.
import { BROKER_CASES, runBrokerCases } from '../selftest/broker.js'
import { BrokerError } from '../protocol/errors.js'
import { given, type CommonOptions, milliseconds, print } from './output.js'

/** Runs all cases, or one. Exit 1 when any fails. */
export async function runSelftest(options: CommonOptions & { readonly case?: string }): Promise<void> {
  if (options.case !== undefined && !BROKER_CASES.includes(options.case)) {
    throw new BrokerError(
      'usage',
      `--case refused: expected one of ${BROKER_CASES.join(', ')}, got ${given(options.case)}`,
    )
  }
  const cases = await runBrokerCases(options.case)
  const lines = cases.map(
    ({ name, ok, ms, proved }) => `${ok ? 'ok  ' : 'FAIL'}  ${name}: ${proved} (${milliseconds(ms)})`,
  )
  print(options, { schema: 'chio.selftest.v1', cases }, lines)
  if (cases.some(({ ok }) => !ok)) process.exitCode = 1
}
