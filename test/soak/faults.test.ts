// A store that is busy, full, read-only or older than it was, made by real means, under a whole installation: each is
// one sentence with a stable code, nothing is half-written, nothing is executed twice, and the daemon serves again
// when its disk does.
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { authorize, buildRequest, reserve } from '../../host/admission.js'
import { finalize } from '../../host/settlement.js'
import * as plain from '../../selftest/plain-operation.js'
import type { DaemonRole } from '../../selftest/daemon-commands.js'
import { isRoot } from '../support/cage.js'
import { FaultyDisks } from '../support/faulty-disks.js'
import { SKIP_REASONS } from '../support/skips.js'
import { refusalOf } from '../support/trial-world.js'
import { describeWhen } from '../support/when.js'

const BUSY_MS = 4_000
const FULL = /"code":"storage","sentence":"[^"]*SQLITE_FULL; free space on the file system of the store"/

let disks: FaultyDisks
beforeAll(async () => {
  if (isRoot) disks = await FaultyDisks.begin()
})
afterAll(() => disks?.end())

const world = () => disks.world
const hits = (): number => world().provider.hits
const free = () => expect.poll(async () => (await world().slot()).state, { timeout: 10_000 }).toBe('free')

/** The main job, from nothing to a finalized operation. */
async function mainJobWorks(): Promise<void> {
  const before = hits()
  expect(await disks.finished(await disks.started())).toBe('completed')
  expect(hits()).toBe(before + 1)
}

describeWhen(isRoot, SKIP_REASONS.needsRoot, 'a store that another process holds for four seconds', () => {
  test('is waited for, by a reservation and by the end of an execution', { timeout: 60_000 }, async () => {
    const [gate, before] = [disks.gate(), hits()]
    const first = await disks.started()
    const finished = disks.finished(first)
    await gate.reached
    const holders = await Promise.all([disks.hold('broker'), disks.hold('kernel')])
    gate.open()
    const second = disks.started()
    await delay(BUSY_MS)
    for (const holder of holders) await holder.letGo()
    expect(await finished).toBe('completed')
    expect(await disks.finished(await second)).toBe('completed')
    expect(hits()).toBe(before + 2)
  })
})

describeWhen(isRoot, SKIP_REASONS.needsRoot, 'a full disk of the broker', () => {
  test('before the registration: refused with its sentence, no attempt; then the very same one works', async () => {
    const { grant, session } = world()
    const request = buildRequest(grant, world().requested())
    const admitted = await authorize(session, await reserve(session, request, grant.grantId))
    const before = hits()
    await disks.fill('broker')
    const refused = await refusalOf(() => session.broker.register(admitted.register))
    expect(refused).toMatchObject({ code: 'broker_unavailable', outcome: 'not_started' })
    expect(disks.said(FULL)).not.toHaveLength(0)
    const unknown = await refusalOf(() => world().attempt(admitted.attemptId))
    expect(unknown.code).toBe('attempt_unknown')
    await disks.disk('broker').free()
    await session.broker.register(admitted.register)
    const stream = await plain.prepare(world(), admitted)
    await plain.start(world(), admitted)
    expect(await disks.finished({ admitted, stream })).toBe('completed')
    expect(hits()).toBe(before + 1)
  })

  test('between dispatch and completion: the tool gets nothing, the record follows when there is room', async () => {
    const [gate, before] = [disks.gate(), hits()]
    await disks.cutLog('broker')
    const started = await disks.started()
    const { admitted } = started
    const submitted = refusalOf(() => plain.submit(world(), started.stream))
    await gate.reached
    await disks.disk('broker').fill()
    gate.open()
    expect(await submitted).toMatchObject({ code: 'outcome_undetermined', outcome: 'unknown' })
    await free()
    expect(await world().attempt(admitted.attemptId)).toMatchObject({ state: 'dispatch_committed' })
    await disks.disk('broker').free()
    const record = await plain.recordOf(world(), admitted)
    expect(record.kind).toBe('response')
    if (record.kind !== 'response') return
    expect(await finalize(world().session, admitted.operationId, record)).toMatchObject({
      state: 'completed',
    })
    expect(hits()).toBe(before + 1)
  })

  test('and a kill meanwhile: it starts when there is room, and says that the outcome is lost', async () => {
    const { session, trial } = world()
    const [gate, before] = [disks.gate(), hits()]
    await disks.cutLog('broker')
    const started = await disks.started()
    const { admitted } = started
    const submitted = refusalOf(() => plain.submit(world(), started.stream))
    await gate.reached
    await disks.disk('broker').fill()
    gate.open()
    expect((await submitted).code).toBe('outcome_undetermined')
    await trial.kill('broker')
    const refused = await refusalOf(() => trial.start('broker'))
    expect(refused).toMatchObject({ code: 'storage', outcome: 'not_started' })
    expect(refused.message).toMatch(/free space on the file system of the store/)
    await disks.disk('broker').free()
    await trial.start('broker')
    const unknown = { state: 'unknown_outcome', reason: 'outcome_lost' }
    expect(await world().attempt(admitted.attemptId)).toMatchObject(unknown)
    await refusalOf(() => session.broker.register(admitted.register))
    await refusalOf(() => plain.prepare(world(), admitted))
    expect(await world().attempt(admitted.attemptId)).toMatchObject(unknown)
    expect(hits()).toBe(before + 1)
    await mainJobWorks()
  })
})

describeWhen(isRoot, SKIP_REASONS.needsRoot, 'a full disk of the kernel', () => {
  test('before the reservation: refused with its sentence, no operation; then it works', async () => {
    const listed = async () => (await world().session.kernel.call('list', { limit: 1_000 })).operations.length
    const before = await listed()
    await disks.fill('kernel')
    disks.log.length = 0
    const refused = await refusalOf(() => plain.admit(world(), Buffer.from('{}')))
    expect(refused).toMatchObject({ code: 'kernel_unavailable', outcome: 'not_started' })
    expect(disks.said(FULL)).not.toHaveLength(0)
    expect(await listed()).toBe(before)
    await disks.disk('kernel').free()
    await mainJobWorks()
  })

  test('at the start: nothing is captured, so the broker sends nothing, and all is given back', async () => {
    const admitted = await plain.admit(world(), Buffer.from('{}'))
    const stream = await plain.prepare(world(), admitted)
    const before = hits()
    await disks.fill('kernel')
    const refused = await refusalOf(() => plain.start(world(), admitted))
    expect(refused).toMatchObject({ code: 'kernel_unavailable', outcome: 'unknown' })
    const outcome = plain.judged(admitted, await plain.submit(world(), stream))
    expect(outcome).toMatchObject({ kind: 'failure' })
    await disks.disk('kernel').free()
    if (outcome.kind !== 'failure') return
    const { state } = await finalize(world().session, admitted.operationId, outcome)
    expect(state).toBe('compensated_before_dispatch')
    expect(hits()).toBe(before)
  })

  test('between start and finalizing: the outcome is the tool’s and the host’s, the kernel takes it later', async () => {
    const { admitted, stream } = await disks.started()
    await disks.fill('kernel')
    const outcome = plain.judged(admitted, await plain.submit(world(), stream))
    if (outcome.kind !== 'response') throw new Error(`expected a response, got ${outcome.kind}`)
    const refused = await refusalOf(() => finalize(world().session, admitted.operationId, outcome))
    expect(refused.code).toBe('kernel_unavailable')
    expect((await world().operation(admitted.operationId)).state).toBe('dispatch_committed')
    await disks.disk('kernel').free()
    expect(await finalize(world().session, admitted.operationId, outcome)).toMatchObject({
      state: 'completed',
    })
  })
})

const ROLES: readonly DaemonRole[] = ['broker', 'kernel']

for (const role of ROLES)
  describeWhen(isRoot, SKIP_REASONS.needsRoot, `the store of the ${role}`, () => {
    test('on a disk that was mounted read-only is refused with its sentence, and served once it is not', async () => {
      const { trial } = world()
      await trial[role].stop()
      await disks.disk(role).forbidWrites()
      const refused = await refusalOf(() => trial.start(role))
      expect(refused).toMatchObject({ code: 'storage', outcome: 'not_started' })
      expect(refused.message).toMatch(/EROFS; mount the file system of the store writable/)
      await disks.disk(role).allowWrites()
      await trial.start(role)
      await mainJobWorks()
    })

    test('is refused as an older copy, executes nothing, and serves again as the newest', async () => {
      const { trial } = world()
      await disks.copy(role, 'older')
      const last = await disks.started()
      expect(await disks.finished(last)).toBe('completed')
      const before = hits()
      await trial.kill(role)
      await disks.copy(role, 'newest')
      await disks.putBack(role, 'older')
      const refused = await refusalOf(() => trial.start(role))
      expect(refused).toMatchObject({ code: 'store_replaced', outcome: 'not_started' })
      expect(refused.message).toMatch(/an older copy was put back: restore the newest state/)
      await disks.putBack(role, 'newest')
      await trial.start(role)
      expect((await world().operation(last.admitted.operationId)).state).toBe('completed')
      expect((await plain.recordOf(world(), last.admitted)).kind).toBe('response')
      expect(hits()).toBe(before)
      await mainJobWorks()
    })
  })
