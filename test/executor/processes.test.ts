// Many processes at once under one authorization: one of them acts, and in the end all of them have its bytes.
import { readFileSync, writeFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { FULL_RUN_TIMEOUT_MS, fullCount } from '../support/counts.js'
import { type ExecutorProcess, startExecutor } from '../support/executor-child.js'
import { authorizationOf, ExecutorWorld, hexOf } from '../support/executor-world.js'

let world: ExecutorWorld
const children: ExecutorProcess[] = []
beforeEach(async () => {
  world = await ExecutorWorld.begin()
})
afterEach(async () => {
  await Promise.all(children.splice(0).map(child => child.end()))
  world.end()
})

const HOUR_MS = 3_600_000
const PROCESSES = fullCount(4, 20)

test(
  'while one process acts, all others are told that the outcome is unknown, and later have its bytes',
  async () => {
    const now = Date.now()
    const authorization = authorizationOf('one', { expires_at_unix_ms: now + HOUR_MS })
    const gate = `${world.folder}/gate`
    const started = Array.from({ length: PROCESSES }, () => startExecutor(world, { authorization, gate }))
    children.push(...(await Promise.all(started)))
    const waiting = new Map(
      children.map(child => [child, child.answer().then(answer => ({ answer, child }))]),
    )
    for (const child of children) child.tell()
    while (waiting.size > 1) {
      const { answer, child } = await Promise.race(waiting.values())
      expect(answer).toEqual({ code: 'executor_outcome_unknown' })
      waiting.delete(child)
    }
    writeFileSync(gate, '')
    const [winner] = (await Promise.all(waiting.values())).map(({ answer }) => answer)
    expect(winner).toEqual({ report: expect.any(String) as string })
    for (const child of children) child.tell()
    expect(await Promise.all(children.map(child => child.answer()))).toEqual(children.map(() => winner))
    expect(world.effects()).toHaveLength(1)
  },
  FULL_RUN_TIMEOUT_MS,
)

test('twenty executions at once in one process are one effect', async () => {
  const authorization = authorizationOf('one', { expires_at_unix_ms: Date.now() + HOUR_MS })
  const ledger = await world.open({ lockWaitMs: 120_000 })
  const terms = () => world.executeBy(ledger, authorization)
  const ended = await Promise.allSettled(Array.from({ length: 20 }, terms))
  const reports = ended.flatMap(one => (one.status === 'fulfilled' ? [hexOf(one.value)] : []))
  const refusals = ended.flatMap(one =>
    one.status === 'rejected' ? [(one.reason as { code: string }).code] : [],
  )
  expect(new Set(reports).size).toBe(1)
  expect(refusals.filter(code => code !== 'executor_outcome_unknown')).toEqual([])
  expect(world.effects()).toHaveLength(1)
})

test('a ledger that another process is at is waited for, and then refused by its pid', async () => {
  const stopped = { dieAt: 'claim_recorded:before_commit', signal: 'SIGSTOP' } as const
  const child = await startExecutor(world, { authorization: authorizationOf('one'), ...stopped })
  children.push(child)
  child.tell()
  const { pid } = child.child.process
  const refused = () =>
    world.open({ lockWaitMs: 0 }).then(
      () => '',
      (error: unknown) => (error as Error).message,
    )
  while ((await refused()) === '' || !readFileSync(`/proc/${pid}/stat`, 'latin1').includes(') T '))
    await delay(10)
  expect(await refused()).toMatch(new RegExp(`owner.lock to be free, got a lock held by pid ${pid};`))
  child.child.process.kill('SIGCONT')
  expect(await child.answer()).toEqual({ report: expect.any(String) as string })
})
