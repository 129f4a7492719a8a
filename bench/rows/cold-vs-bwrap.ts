// Row cold-vs-bwrap: what cage-init, filter, limits, handoff and census add to bwrap itself.
import { endOf, startBare } from '../bare-bubblewrap.js'
import { ToolStream } from '../cages.js'
import { interleave, millisecondsOf } from '../interleave.js'
import type { Lab } from '../lab.js'
import { type BenchRow, ratioAtMost } from '../row.js'
import { coldLaunch } from './warm-vs-cold.js'

const NOTE =
  'the same static tool to its first byte on descriptor 8. ours: bwrap, cage-init, both censuses, handoff, exec. ' +
  'theirs: bwrap from Node with exactly the same arguments, the tool started by it directly, the stream inherited'

async function bare(lab: Lab): Promise<number> {
  const stream = new ToolStream()
  let ended: Promise<void> = Promise.resolve()
  const took = await millisecondsOf(async () => {
    ended = endOf(startBare(lab.cages().firstByte, stream.tool))
    await stream.firstByte()
  })
  stream.close()
  await ended
  return took
}

export const coldVsBwrap: BenchRow = {
  id: 'cold-vs-bwrap',
  ours: 'cold launch → first byte',
  theirs: 'bare bwrap → first byte',
  unit: 'ms',
  goal: ratioAtMost(1.15, '≤ 1.15 ×'),
  rounds: 60,
  async measure(lab, rounds) {
    const measured = await interleave(
      rounds,
      () => coldLaunch(lab),
      () => bare(lab),
    )
    return { ...measured, note: NOTE }
  },
}
