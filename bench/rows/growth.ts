// Row growth: whether an operation gets slower with the history that both daemons keep.
import { interleave, millisecondsOf } from '../interleave.js'
import { wholeOperation } from '../operation.js'
import { openRetainedInstallation } from '../retained-installation.js'
import { type BenchRow, ratioAtMost } from '../row.js'

const SMALL = 1_000

export const growth: BenchRow = {
  id: 'growth',
  ours: 'an operation with a long history',
  theirs: 'with a short one',
  unit: 'ms',
  goal: ratioAtMost(1.2, '≤ 1.2 ×'),
  rounds: 200,
  async measure(lab, rounds) {
    const large = await openRetainedInstallation(lab.retainedAttempts)
    try {
      const small = await openRetainedInstallation(SMALL)
      try {
        const measured = await interleave(
          rounds,
          () => millisecondsOf(() => wholeOperation(large)),
          () => millisecondsOf(() => wholeOperation(small)),
        )
        return { ...measured, note: noteOf(lab.retainedAttempts) }
      } finally {
        await small.close()
      }
    } finally {
      await large.close()
    }
  },
}

function noteOf(retained: number): string {
  return (
    `two installations side by side, ${retained.toLocaleString('en')} and ${SMALL.toLocaleString('en')} completed ` +
    'operations retained in both stores of each (attempts, receipts, responses, operations, history, holds); ' +
    'reserve to finalized, the stream submitted in the host process'
  )
}
