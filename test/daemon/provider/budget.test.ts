import { describe, expect, it } from 'vitest'
import { OpeningBudget, untilAborted } from '../../../daemon/provider/budget.js'
import { BrokerError } from '../../../protocol/errors.js'
import { HeldClock, runningClock } from '../../support/clock.js'
import { inMs } from '../../support/provider-exchange.js'

const pause = (milliseconds: number): Promise<void> =>
  new Promise(resolve => setTimeout(resolve, milliseconds))

describe('the budget of an opening', () => {
  it('aborts at its deadline with a refusal that says nothing was sent', async () => {
    const budget = new OpeningBudget(runningClock, inMs(20))
    await expect(untilAborted(new Promise(() => undefined), budget.signal)).rejects.toMatchObject({
      code: 'upstream',
      outcome: 'not_started',
    })
  })

  it('is over at once when its deadline has passed', () => {
    expect(new OpeningBudget(runningClock, inMs(-1)).signal.aborted).toBe(true)
  })

  it('does not abort while the clock stands before its deadline, whatever timers say', async () => {
    const clock = new HeldClock()
    const budget = new OpeningBudget(clock, inMs(20, clock))
    await pause(60)
    expect(budget.signal.aborted).toBe(false)
    clock.pass(21)
    await pause(60)
    expect(budget.signal.aborted).toBe(true)
  })

  it('gives each of several tries an equal share under a ceiling, and the last all that is left', async () => {
    const clock = new HeldClock()
    const budget = new OpeningBudget(clock, inMs(9_000, clock))
    const [third, ceiling, all] = [budget.share(3, 10_000), budget.share(3, 1_000), budget.share(1, 1_000)]
    const aborted = async (milliseconds: number): Promise<boolean[]> => {
      clock.pass(milliseconds)
      await pause(1_050)
      return [third, ceiling, all, budget].map(({ signal }) => signal.aborted)
    }
    expect(await aborted(1_001)).toEqual([false, true, false, false])
    expect(await aborted(2_000)).toEqual([true, true, false, false])
    expect(await aborted(6_000)).toEqual([true, true, true, true])
  })

  it('takes its shares with it when it is cancelled, and is deaf after its end', () => {
    const budget = new OpeningBudget(runningClock, inMs(5_000))
    const [live, ended] = [budget.share(2, 5_000), budget.share(2, 5_000)]
    ended.end()
    budget.cancel(new BrokerError('upstream', 'dropped'))
    expect([live.signal.aborted, ended.signal.aborted]).toEqual([true, false])
    expect(live.signal.reason).toMatchObject({ message: 'dropped' })
  })
})
