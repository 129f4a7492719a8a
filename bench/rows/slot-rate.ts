// Row slot-rate: operations a second through the one slot, one after the other, against what the unavoidable part of
// each would allow.
import { interleave, millisecondsOf } from '../interleave.js'
import { wholeOperation } from '../operation.js'
import { issueBody } from '../request-body.js'
import type { BenchRow } from '../row.js'
import { ScratchStore } from '../scratch-store.js'

/** Operations of one sample: one alone would be latency, not a rate. */
const OPERATIONS = 10

/** reserve, retained request, registration, start, dispatch, completion, finalization. */
const COMMITS_OF_AN_OPERATION = 7

const NOTE =
  `a sample is ${OPERATIONS} in a row. ours: reserve to finalized, one host, the stream submitted in the host ` +
  `process. theirs: one fresh node:https request and ${COMMITS_OF_AN_OPERATION} durable commits of two kilobytes ` +
  'each (as many as ours makes), nothing else'

async function perSecond(times: () => Promise<unknown>): Promise<number> {
  const took = await millisecondsOf(async () => {
    for (let done = 0; done < OPERATIONS; done++) await times()
  })
  return (OPERATIONS * 1_000) / took
}

export const slotRate: BenchRow = {
  id: 'slot-rate',
  ours: 'whole operations',
  theirs: 'fresh HTTPS and as many commits',
  unit: '/s',
  goal: {
    text: '≥ 100 /s and ≥ 0.5 ×',
    met: ({ ours, ratio }) => (ratio === null ? null : ours.p50 >= 100 && ratio >= 0.5),
  },
  rounds: 30,
  async measure(lab, rounds) {
    const installation = await lab.installation()
    const scratch = await ScratchStore.open()
    const body = issueBody()
    try {
      const measured = await interleave(
        rounds,
        () => perSecond(() => wholeOperation(installation)),
        () =>
          perSecond(async () => {
            await installation.provider.plainRequest(body)
            for (let commit = 0; commit < COMMITS_OF_AN_OPERATION; commit++) await scratch.commit()
          }),
      )
      return { ...measured, note: NOTE }
    } finally {
      scratch.close()
    }
  },
}
