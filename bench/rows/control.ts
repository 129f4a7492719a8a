// Row control: what an operator waits for an answer while the slot executes, against the same question while it is
// free. Two operations in turn: slot_status, which needs the peer check, and credential_list, which carries an
// administrator's signature.
import { deadlineAfter } from '../../system/deadline.js'
import { trialAdministrator } from '../../selftest/trial-grant.js'
import { systemClock } from '../../native/clock.js'
import { millisecondsOf } from '../interleave.js'
import { wholeOperation } from '../operation.js'
import { issueBody } from '../request-body.js'
import { type BenchRow, type Measured, oursJudged } from '../row.js'
import type { Installation } from '../installation.js'

/** Long enough for the questions of one round, at the pace of an operator's tools. */
const HOLD_MS = 300
const PAUSE_MS = 2

const NOTE =
  `a round: one operation whose provider answers after ${HOLD_MS} ms, asked every ${PAUSE_MS} ms while the slot ` +
  'executes (ours), then for as long with the slot free (theirs); slot_status and the signed credential_list in turn'

type Ask = () => Promise<unknown>

/** Asks in turn until the time is over. */
async function askWhile(asks: readonly Ask[], isOver: () => boolean): Promise<number[]> {
  const waits: number[] = []
  for (let turn = 0; !isOver(); turn++) {
    waits.push(await millisecondsOf(asks[turn % asks.length] as Ask))
    await new Promise(resolve => setTimeout(resolve, PAUSE_MS))
  }
  return waits
}

async function whileExecuting(installation: Installation, asks: readonly Ask[]): Promise<number[]> {
  const { broker } = installation.session
  let isOver = false
  const operation = wholeOperation(installation, undefined, issueBody(HOLD_MS)).finally(() => (isOver = true))
  const untilExecuting = async (): Promise<void> => {
    while (!isOver && (await broker.slotStatus()).state !== 'executing') {
      await new Promise(resolve => setTimeout(resolve, PAUSE_MS))
    }
  }
  await untilExecuting()
  const answered = await askWhile(asks, () => isOver)
  await operation
  return answered
}

async function whileFree(asks: readonly Ask[]): Promise<number[]> {
  const deadlineBootNs = deadlineAfter(systemClock, HOLD_MS)
  return askWhile(asks, () => systemClock.bootNs() >= deadlineBootNs)
}

export const control: BenchRow = {
  id: 'control',
  ours: 'asked while the slot executes',
  theirs: 'asked while it is free',
  unit: 'ms',
  goal: oursJudged('p99 ≤ 10 ms', ours => ours.p99 <= 10),
  rounds: 20,
  async measure(lab, rounds): Promise<Measured> {
    const installation = await lab.installation()
    const administrator = trialAdministrator(installation.trial)
    const asks = [() => installation.session.broker.slotStatus(), () => administrator.credentials()]
    const measured: Measured = { ours: [], theirs: [], note: NOTE }
    try {
      await whileExecuting(installation, asks)
      for (let round = 0; round < rounds; round++) {
        measured.ours.push(...(await whileExecuting(installation, asks)))
        measured.theirs.push(...(await whileFree(asks)))
      }
      return measured
    } finally {
      administrator.close()
    }
  },
}
