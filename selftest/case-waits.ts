// Case 1: the stream waits in its slot while control operations are answered, is handed over by
// SCM_RIGHTS into a cage, and executes once; its record replays byte for byte and reaches nobody again.
import { setTimeout as sleep } from 'node:timers/promises'
import { cagePolicy, openCage, resolveTool, type WaitingCage } from '../cage/index.js'
import { readOutcome } from '../client/outcome.js'
import { prepareDispatchConnection } from '../client/prepare.js'
import { type AdmittedOperation, authorize, reserve } from '../host/admission.js'
import { finalize, isSigned } from '../host/settlement.js'
import { closeDescriptor, nativePath } from '../native/index.js'
import { systemClock } from '../native/clock.js'
import { NS_PER_MS } from '../protocol/clock.js'
import type { BrokerBench } from './broker-bench.js'
import { CaseFailure, expectAtMost, expectEqual } from './case-result.js'

const WAIT_MS = 150
const CONTROL_BOUND_MS = 100
const OUTCOME_BUDGET_MS = 40_000

export async function waitsAndExecutesOnce(bench: BrokerBench): Promise<string> {
  const before = await bench.touches()
  const admitted = await admit(bench)
  const cage = await openCage(policyOf(bench))
  try {
    const slowestMs = await execute(bench, admitted, cage)
    await expectReplay(bench, admitted)
    expectEqual('provider requests', before.requests + 1, bench.provider.requests)
    return `held ${WAIT_MS} ms, control answered within ${slowestMs.toFixed(1)} ms meanwhile, one provider request, the replay is byte-identical`
  } finally {
    await cage.close()
  }
}

function policyOf(bench: BrokerBench) {
  return cagePolicy({
    ...resolveTool(nativePath('chio-exec')),
    exec: 'once',
    identity: bench.trial.identities.cage,
  })
}

async function admit(bench: BrokerBench): Promise<AdmittedOperation> {
  const reservation = await reserve(bench.session, bench.request, bench.grant.grantId)
  const admitted = await authorize(bench.session, reservation)
  await bench.session.broker.register(admitted.register)
  return admitted
}

async function execute(bench: BrokerBench, admitted: AdmittedOperation, cage: WaitingCage): Promise<number> {
  const { session } = bench
  const { stream } = await prepareDispatchConnection(session.pins.broker, admitted.prepare, systemClock)
  await session.kernel.call('start', {
    executionNonce: admitted.executionNonce,
    operationId: admitted.operationId,
  })
  const descriptor = stream.takeDescriptor()
  const armed = await cage.handOff(descriptor, stream.frame).finally(() => closeDescriptor(descriptor))
  const slowestMs = await controlWhile(bench)
  const running = armed.go()
  const outcome = await readOutcome(session.broker, admitted.context, OUTCOME_BUDGET_MS)
  if (outcome.kind !== 'response') throw new CaseFailure(`outcome: expected a response, got ${outcome.kind}`)
  expectEqual('status', 201, outcome.response.status)
  await finalize(session, admitted.operationId, outcome)
  const tool = await running.finished
  expectEqual('exit of the tool', 0, tool.exitCode)
  return slowestMs
}

/** Asks control questions for as long as the stream waits. @returns the slowest answer. */
async function controlWhile(bench: BrokerBench): Promise<number> {
  const endBootNs = systemClock.bootNs() + BigInt(WAIT_MS) * NS_PER_MS
  let slowestMs = 0
  while (systemClock.bootNs() < endBootNs) {
    const askedBootNs = systemClock.bootNs()
    expectEqual('slot while the stream waits', 'waiting', await bench.slotState())
    slowestMs = Math.max(slowestMs, Number(systemClock.bootNs() - askedBootNs) / 1e6)
    await sleep(5)
  }
  expectAtMost('slowest control answer in ms', CONTROL_BOUND_MS, slowestMs)
  return slowestMs
}

async function expectReplay(bench: BrokerBench, admitted: AdmittedOperation): Promise<void> {
  const [first, second] = [
    await readOutcome(bench.session.broker, admitted.context, OUTCOME_BUDGET_MS),
    await readOutcome(bench.session.broker, admitted.context, OUTCOME_BUDGET_MS),
  ]
  if (!isSigned(first) || !isSigned(second))
    throw new CaseFailure('replay: expected the stored frame, got none')
  expectEqual(
    'replayed frame',
    Buffer.from(first.frame).toString('hex'),
    Buffer.from(second.frame).toString('hex'),
  )
}
