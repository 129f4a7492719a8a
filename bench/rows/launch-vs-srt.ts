// Row launch-vs-srt: a start in our cage against the sandbox that agent hosts use today, as its users start it.
import { runToEnd } from '../cages.js'
import { interleave, millisecondsOf } from '../interleave.js'
import { sandboxRuntime } from '../peer-srt.js'
import { type BenchRow, ratioAtMost } from '../row.js'

export const launchVsSrt: BenchRow = {
  id: 'launch-vs-srt',
  ours: 'cold launch of true → its end',
  theirs: 'srt true',
  unit: 'ms',
  goal: ratioAtMost(0.05, '≤ 0.05 ×'),
  rounds: 20,
  async measure(lab, rounds) {
    const srt = sandboxRuntime()
    const policy = lab.cages().true
    const measured = await interleave(
      rounds,
      () => millisecondsOf(() => runToEnd(policy)),
      () => millisecondsOf(() => srt.runTrue()),
    )
    const note =
      'the program is /usr/bin/true to its exit. ours: a cage opened, armed, censused and ended by the library in a ' +
      `Node process that runs already. theirs: the srt command ${srt.version} with its default policy, which starts ` +
      'a Node process each time'
    return { ...measured, note }
  },
}
