// The four cases of the prepared connection, on this very machine: a real broker process, real sockets,
// the real handoff into a cage. Each says in a line what it proved.
import { systemClock } from '../native/clock.js'
import { BrokerBench } from './broker-bench.js'
import type { CaseEnding, CaseResult } from './case-result.js'
import { followsExpiries } from './case-expiries.js'
import { freesTheSlot } from './case-frees.js'
import { refusesSubstitution } from './case-refuses.js'
import { waitsAndExecutesOnce } from './case-waits.js'

interface BrokerCase {
  readonly name: string
  readonly ending: CaseEnding
  /** @returns what was proved. @throws CaseFailure saying what was found instead. */
  readonly run: (bench: BrokerBench) => Promise<string>
}

const CASES: readonly BrokerCase[] = [
  { name: 'waits-without-blocking-control-and-executes-once', ending: 'executed', run: waitsAndExecutesOnce },
  {
    name: 'refuses-unauthorized-second-and-substituted',
    ending: 'refused_binding',
    run: refusesSubstitution,
  },
  { name: 'expiry-end-of-stream-and-trickle-free-the-slot', ending: 'client_fault', run: freesTheSlot },
  {
    name: 'lifetime-follows-capability-and-nonce-expiry',
    ending: 'declined_preparation',
    run: followsExpiries,
  },
]

/** Names of all cases, for --case. */
export const BROKER_CASES: readonly string[] = CASES.map(({ name }) => name)

/** Runs all cases, or one by name, on one trial installation. */
export async function runBrokerCases(only?: string): Promise<CaseResult[]> {
  const bench = await BrokerBench.open()
  try {
    const results: CaseResult[] = []
    for (const one of CASES.filter(({ name }) => only === undefined || name === only)) {
      results.push(await runCase(one, bench))
    }
    return results
  } finally {
    await bench.close()
  }
}

async function runCase({ name, ending, run }: BrokerCase, bench: BrokerBench): Promise<CaseResult> {
  const startedBootNs = systemClock.bootNs()
  const done = (ok: boolean, proved: string): CaseResult => {
    const ms = Number((systemClock.bootNs() - startedBootNs) / 1_000n) / 1_000
    return { name, ok, ending, ms, proved }
  }
  try {
    return done(true, await run(bench))
  } catch (error) {
    return done(false, error instanceof Error ? error.message : 'an unknown fault')
  }
}
