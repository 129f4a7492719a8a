// Owns one whole brokered operation through a cage that is already waiting: what `runBrokered` does, with the
// journal, but for the opening of the cage, which a host does ahead.
// Must never: leave out a step that `runBrokered` takes, or take one that it does not.
import type { WaitingCage } from '../cage/index.js'
import { openJournal } from '../host/prepared-run.js'
import { retainOutcome } from '../host/run-record.js'
import { finalize } from '../host/settlement.js'
import { closeDescriptor } from '../native/index.js'
import type { Installation } from './installation.js'
import { admit, outcomeOf, prepare, start, type StepTimer } from './operation.js'
import { issueBody } from './request-body.js'

const TOOL_GRACE_MS = 5_000

export async function cagedOperation(
  installation: Installation,
  cage: WaitingCage,
  timed: StepTimer,
): Promise<void> {
  const { session } = installation
  const admitted = await admit(installation, issueBody(), timed)
  const stream = await timed('prepare', () => prepare(installation, admitted))
  const journal = await timed('journal request', () => openJournal(session, admitted, stream.frame))
  await timed('start', () => start(installation, admitted))
  const descriptor = stream.takeDescriptor()
  const armed = await timed('handoff', () => cage.handOff(descriptor, stream.frame)).finally(() =>
    closeDescriptor(descriptor),
  )
  const running = armed.go()
  const outcome = await timed('outcome', () => outcomeOf(installation, admitted))
  await timed('journal outcome', () => retainOutcome(journal, admitted, outcome, armed.census))
  await timed('finalize', () => finalize(session, admitted.operationId, outcome))
  await timed('tool end', () => running.finish(TOOL_GRACE_MS))
}
