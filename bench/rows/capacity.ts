// Row capacity: whether one slot declines as often as a loss system of one server does: a measured run against the
// formula, at three loads. The question is about arithmetic, not about speed.
import { runArrivals } from '../arrivals.js'
import { erlangB } from '../erlang-b.js'
import type { BenchRow, Measured } from '../row.js'
import { SeededRandom } from '../seeded-random.js'

const SEED = 20_261_130
const MEAN_HOLD_MS = 60
/** Arrivals a second times seconds held, as planned; the formula gets what was really held. */
const PLANNED_LOADS = [0.25, 1, 3]
const ARRIVALS_PER_ROUND = 10
const STANDARD_ERRORS = 4

const PERCENT = 100

export const capacity: BenchRow = {
  id: 'capacity',
  ours: 'arrivals declined, measured',
  theirs: 'Erlang B of one server',
  unit: '%',
  goal: { text: `each load within ${STANDARD_ERRORS} standard errors`, met: () => null },
  rounds: 40,
  async measure(lab, rounds): Promise<Measured> {
    const installation = await lab.installation()
    const random = new SeededRandom(SEED)
    const loads: LoadResult[] = []
    for (const planned of PLANNED_LOADS) {
      const perSecond = (planned * 1_000) / MEAN_HOLD_MS
      const arrivals = rounds * ARRIVALS_PER_ROUND
      const counts = await runArrivals(installation, {
        arrivals,
        perSecond,
        meanHoldMs: MEAN_HOLD_MS,
        random,
      })
      const meanHoldMs = counts.holdsMs.reduce((sum, held) => sum + held, 0) / counts.holdsMs.length
      const load = (perSecond * meanHoldMs) / 1_000
      loads.push({ arrivals, load, measured: counts.declined / arrivals, formula: erlangB(1, load) })
    }
    return {
      ours: loads.map(({ measured }) => measured * PERCENT),
      theirs: loads.map(({ formula }) => formula * PERCENT),
      met: loads.every(isWithin),
      note: noteOf(loads),
    }
  },
}

interface LoadResult {
  readonly arrivals: number
  readonly load: number
  /** Shares from 0 to 1. */
  readonly measured: number
  readonly formula: number
}

/** Of a binomial count; arrivals depend on each other a little, so the bound is a wide one. */
function isWithin({ arrivals, formula, measured }: LoadResult): boolean {
  const standardError = Math.sqrt((formula * (1 - formula)) / arrivals)
  return Math.abs(measured - formula) <= STANDARD_ERRORS * standardError
}

function noteOf(loads: readonly LoadResult[]): string {
  const percent = (share: number): string => `${(share * PERCENT).toFixed(1)} %`
  const results = loads.map(
    ({ arrivals, load, measured, formula }) =>
      `load ${load.toFixed(2)}: ${percent(measured)} of ${arrivals} declined, formula ${percent(formula)}`,
  )
  return (
    `Poisson arrivals (seed ${SEED}) at the slot of a running broker, each an operation whose provider holds it for ` +
    `an exponential time of ${MEAN_HOLD_MS} ms; the load is the rate times the mean time really held. ${results.join('; ')}`
  )
}
