// One brokered operation with the probe as its tool: the cage, the stream and the broker are the real ones. What the
// tool says is its own word; what the provider counted and the broker recorded is kept beside it.
import { cagePolicy, type ResolvedTool, resolveTool } from '../../cage/index.js'
import { type BrokeredRun, runBrokered } from '../../host/brokered-run.js'
import { nativePath } from '../../native/index.js'
import type { BrokerBench } from '../broker-bench.js'
import type { CageKind } from './attempt.js'

const BODY = Buffer.from('{"title":"selftest of the cage"}', 'utf8')

export interface HostileRun {
  readonly run: BrokeredRun
  readonly said: string
  /** Requests that reached the provider meanwhile. */
  readonly hits: number
}

/** The whole report is wanted, on a busy machine too, although the stream's record stands long before. */
const TOOL_GRACE_MS = 120_000

/** The slot of the run before may be a moment from free. */
const SLOT_WAIT_MS = 10_000

/** Runs the probe with these arguments to its end. */
export function runProbe(bench: BrokerBench, kind: CageKind, args: readonly string[]): Promise<HostileRun> {
  return runTool(bench, kind, resolveTool(nativePath('cage-probe'), args))
}

/** The plain tool, which every run has for which the operator names none. */
export function runPlainTool(bench: BrokerBench): Promise<HostileRun> {
  return runTool(bench, { profile: 'native', exec: 'once' }, resolveTool(nativePath('chio-exec')))
}

async function runTool(bench: BrokerBench, kind: CageKind, tool: ResolvedTool): Promise<HostileRun> {
  const before = bench.provider.requests
  const run = await runBrokered(bench.session, {
    grantId: bench.grant.grantId,
    body: BODY,
    headers: [],
    waitForSlotMs: SLOT_WAIT_MS,
    toolGraceMs: TOOL_GRACE_MS,
    cage: cagePolicy({ ...tool, ...kind, identity: bench.trial.identities.cage }),
  })
  return { run, said: Buffer.from(run.tool.stdout).toString(), hits: bench.provider.requests - before }
}
