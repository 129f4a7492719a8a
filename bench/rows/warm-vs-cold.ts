// Row warm-vs-cold: how much of a cage's start a cage that waits has behind it.
import { openCage } from '../../cage/index.js'
import { firstByteOfHandoff, firstByteOfLaunch, ToolStream } from '../cages.js'
import { interleave, millisecondsOf } from '../interleave.js'
import type { Lab } from '../lab.js'
import { type BenchRow, ratioAtMost } from '../row.js'

const NOTE =
  'the same static tool, which says one byte on descriptor 8. ours: from the handoff message, through filter, ' +
  'limits, armed census and go, to that byte. theirs: the same, and before it the launch of bwrap and cage-init ' +
  'with the census of the waiting cage'

async function warm(lab: Lab): Promise<number> {
  const cage = await openCage(lab.cages().firstByte)
  const stream = new ToolStream()
  let finished: Promise<unknown> = Promise.resolve()
  const took = await millisecondsOf(async () => {
    finished = (await firstByteOfHandoff(cage, stream)).finished
  })
  stream.close()
  await finished
  return took
}

/** One cold launch with its end, which is not timed. */
export async function coldLaunch(lab: Lab): Promise<number> {
  const stream = new ToolStream()
  let finished: Promise<unknown> = Promise.resolve()
  const took = await millisecondsOf(async () => {
    finished = (await firstByteOfLaunch(lab.cages().firstByte, stream)).finished
  })
  stream.close()
  await finished
  return took
}

export const warmVsCold: BenchRow = {
  id: 'warm-vs-cold',
  ours: 'handoff → first byte',
  theirs: 'cold launch → first byte',
  unit: 'ms',
  goal: ratioAtMost(0.2, '≤ 0.20 ×'),
  rounds: 60,
  async measure(lab, rounds) {
    const measured = await interleave(
      rounds,
      () => warm(lab),
      () => coldLaunch(lab),
    )
    return { ...measured, note: NOTE }
  },
}
