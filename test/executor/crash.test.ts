// A process that is killed at any boundary of an execution leaves at most one effect, and never an invented result: what
// is repeated afterwards is either unknown for ever or the same bytes for ever.
import { randomInt } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { CallerAuthorization } from '../../protocol/caller-authorization.js'
import { FULL_RUN_TIMEOUT_MS, fullCount, isFullRun } from '../support/counts.js'
import { startExecutor } from '../support/executor-child.js'
import { authorizationOf, EXECUTOR_KEY, ExecutorWorld, hexOf } from '../support/executor-world.js'

let world: ExecutorWorld
const ROUNDS = fullCount(1, 50)
beforeEach(async () => {
  world = await ExecutorWorld.begin(1)
})
afterEach(() => world.end())

/** What a repeated command gets: the report, or the code of its refusal. */
const saidAgain = (authorization: CallerAuthorization): Promise<string> =>
  world
    .execute(authorization, { lockWaitMs: 60_000 })
    .then(hexOf, (error: unknown) => (error as { code: string }).code)

interface Boundary {
  readonly dieAt: string
  readonly dieAtVisit: number
  /** Effects when the process has died, and what the first command afterwards gets. */
  readonly effects: 0 | 1
  readonly repeated: 'acts' | 'replays' | 'unknown'
}

/** Each of them in a full run; what lies between claim, effect and report in every run. */
const BOUNDARIES: readonly Boundary[] = [
  { dieAt: 'claim_recorded:before_commit', dieAtVisit: 1, effects: 0, repeated: 'acts' },
  { dieAt: 'claim_recorded:after_commit', dieAtVisit: 1, effects: 0, repeated: 'unknown' },
  { dieAt: 'head_written:after_sync', dieAtVisit: 1, effects: 0, repeated: 'unknown' },
  { dieAt: 'callback:before_effect', dieAtVisit: 1, effects: 0, repeated: 'unknown' },
  { dieAt: 'callback:after_effect', dieAtVisit: 1, effects: 1, repeated: 'unknown' },
  { dieAt: 'report_retained:before_commit', dieAtVisit: 1, effects: 1, repeated: 'unknown' },
  { dieAt: 'report_retained:after_commit', dieAtVisit: 1, effects: 1, repeated: 'replays' },
  { dieAt: 'head_written:after_sync', dieAtVisit: 2, effects: 1, repeated: 'replays' },
]

const MOST_IMPORTANT = [
  'claim_recorded:after_commit',
  'callback:after_effect',
  'report_retained:after_commit',
]

/** A process executes and dies. @param kill ends it, where no cutpoint does. */
async function died(
  authorization: CallerAuthorization,
  terms: { readonly dieAt?: string; readonly dieAtVisit?: number },
  kill?: (process: { kill(signal: 'SIGKILL'): unknown }) => Promise<void>,
): Promise<void> {
  const { child, tell } = await startExecutor(world, { authorization, ...terms })
  tell()
  await kill?.(child.process)
  const { signal } = await child.ended()
  expect(signal).toBe('SIGKILL')
}

/** Of one operation: its effects, and that two commands after the death say the same for ever. */
async function settled(authorization: CallerAuthorization) {
  const { operation_id } = authorization.authorization.invocation
  const effects = () => world.effects().filter(line => line.startsWith(operation_id)).length
  const left = effects()
  const first = await saidAgain(authorization)
  expect(await saidAgain(authorization)).toBe(first)
  return { first, left, now: effects() }
}

describe('a process that is killed', () => {
  const told = BOUNDARIES.filter(({ dieAt }) => isFullRun || MOST_IMPORTANT.includes(dieAt))
  test.each(told)(
    'at $dieAt ($dieAtVisit) leaves $effects effects, and whoever repeats it: $repeated',
    async ({ effects, repeated: expected, ...terms }) => {
      for (let round = 0; round < ROUNDS; round += 1) {
        if (round > 0) await (await world.open()).extend(1, EXECUTOR_KEY)
        const authorization = authorizationOf(`${round}`)
        await died(authorization, terms)
        const { first, left, now } = await settled(authorization)
        expect(left).toBe(effects)
        expect(now).toBe(expected === 'acts' ? 1 : effects)
        expect(first === 'executor_outcome_unknown').toBe(expected === 'unknown')
      }
    },
    FULL_RUN_TIMEOUT_MS * 3,
  )

  test(
    'at any moment leaves at most one effect, and no result without one',
    async () => {
      for (let round = 0; round < ROUNDS; round += 1) {
        if (round > 0) await (await world.open()).extend(1, EXECUTOR_KEY)
        const authorization = authorizationOf(`${round}`)
        const afterMs = randomInt(250)
        await died(authorization, {}, async process => {
          await new Promise(resolve => setTimeout(resolve, afterMs))
          process.kill('SIGKILL')
        })
        const { first, left, now } = await settled(authorization)
        const isUnknown = first === 'executor_outcome_unknown'
        const wrong = now > 1 || left > now || (!isUnknown && now !== 1)
        expect(wrong ? { afterMs, first, left, now } : null).toBeNull()
      }
    },
    FULL_RUN_TIMEOUT_MS * 3,
  )
})
