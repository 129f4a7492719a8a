// What a run says when it is told to end: that it was interrupted, whether its request may have been sent, and
// where its record is read. It waits for nothing: the stream and the cage end with the process.
import type { RunProgress } from '../host/brokered-run.js'
import { BrokerError } from '../protocol/errors.js'
import { fail } from './output.js'

const SIGNALS = ['SIGHUP', 'SIGINT', 'SIGTERM'] as const

/** Tells and ends with 75 once a start was sent, with 1 before it. @returns what stops listening. */
export function tellInterruption(progress: () => RunProgress | undefined, json: boolean): () => void {
  const end = (): never => {
    fail(interrupted(progress()), json)
    process.exit()
  }
  for (const signal of SIGNALS) process.once(signal, end)
  return () => SIGNALS.forEach(signal => process.removeListener(signal, end))
}

/** The error of a run that was interrupted there. */
export function interrupted(progress: RunProgress | undefined): BrokerError {
  const { operationId, isStarted = false } = progress ?? {}
  if (operationId === undefined) return new BrokerError('interrupted', 'run interrupted; nothing was started')
  if (isStarted) {
    return new BrokerError(
      'outcome_undetermined',
      `run interrupted; it may have been sent; operation ${operationId}: chio operation outcome ${operationId}`,
      { outcome: 'unknown', operationId },
    )
  }
  return new BrokerError(
    'interrupted',
    `run interrupted; nothing was started; operation ${operationId}: the kernel gives back its hold`,
    { operationId },
  )
}
