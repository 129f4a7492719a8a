// Row operation-vs-bwrap: everything that a brokered operation adds, against what a sandboxed start alone costs.
import { openCage } from '../../cage/index.js'
import { endOf, startBare } from '../bare-bubblewrap.js'
import { cagedOperation } from '../caged-operation.js'
import { interleave, millisecondsOf } from '../interleave.js'
import { type BenchRow, ratioAtMost } from '../row.js'

const NOTE =
  'ours: reserve, authorize, register, prepare, journal, start, handoff into a waiting cage, outcome, journal, ' +
  'finalize, end of the tool (chio-exec); seven durable commits. theirs: bwrap from Node with the arguments of the ' +
  'same cage, the same tool, which finds no descriptor 8 and ends; from spawn to its exit'

export const operationVsBwrap: BenchRow = {
  id: 'operation-vs-bwrap',
  ours: 'a whole operation, warm cage',
  theirs: 'a cold start of its tool in bwrap',
  unit: 'ms',
  goal: ratioAtMost(1, '≤ 1.0 × p50'),
  rounds: 100,
  async measure(lab, rounds) {
    const installation = await lab.installation()
    const { chioExec } = lab.cages()
    const measured = await interleave(
      rounds,
      async () => {
        const cage = await openCage(chioExec)
        try {
          return await millisecondsOf(() => cagedOperation(installation, cage, (_name, step) => step()))
        } finally {
          await cage.close()
        }
      },
      () => millisecondsOf(() => endOf(startBare(chioExec))),
    )
    return { ...measured, note: NOTE }
  },
}
