// A run that is refused at any of its steps: its stream is closed, its attempt ended, its operation settled, the slot
// free for the next; the credential was never decrypted and the provider never reached.
import { chmodSync, readFileSync, writeFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { type BrokeredRun, runBrokered } from '../../host/brokered-run.js'
import type { BrokerError } from '../../protocol/errors.js'
import type { Grant } from '../../protocol/grant.js'
import { issueTrialGrant, trialAdministrator } from '../../selftest/trial-grant.js'
import { isAlive, openFolder } from '../support/cage.js'
import { openDescriptorCount } from '../support/descriptors.js'
import { beforeStep, type HostStep } from '../support/host-steps.js'
import { refusalOf, TrialWorld } from '../support/trial-world.js'

/** In one call: bytes that come after the exact frame was taken change nothing any more. */
const TWICE =
  'cat /run/chio/request.frame /run/chio/request.frame | dd bs=1M iflag=fullblock status=none >&8; cat <&8'

let world: TrialWorld
let grant: Grant
let count = 0
let before: { requests: number; decryptions: number }

beforeAll(async () => {
  world = await TrialWorld.begin()
})
afterAll(() => world?.end())
beforeEach(async () => {
  grant = await newGrant()
  before = await world.touches()
})
afterEach(async () => {
  vi.restoreAllMocks()
  expect((await world.slot()).state).toBe('free')
  expect(await world.touches()).toEqual(before)
})

function newGrant(lifetimeSeconds = 300): Promise<Grant> {
  const grantId = `grant-refused-${(count += 1)}`
  return issueTrialGrant(world.trial, {
    url: world.provider.url('/issues'),
    maximumExecutions: 2,
    grantId,
    lifetimeSeconds,
  })
}

function actBefore(step: HostStep, act: () => Promise<unknown>): void {
  beforeStep(async name => {
    if (name === step) await act()
  })
}

const run = (command?: readonly string[]): Promise<BrokeredRun> =>
  world.run(command, { grantId: grant.grantId })

/** The refusal of a run, with what its two owners have on record of it. */
async function refusedRun(command?: readonly string[]): Promise<{
  error: BrokerError
  operation: Awaited<ReturnType<TrialWorld['operation']>>
  attempt: Awaited<ReturnType<TrialWorld['attempt']>>
}> {
  const error = await refusalOf(() => run(command))
  const operation = await world.operation(error.operationId ?? '')
  return { error, operation, attempt: await world.attempt(operation.attemptId ?? '') }
}

/** A refusal that was signed by the broker ends the run with that record. */
async function recordedRun(): Promise<{
  knowledge: string
  state: string | undefined
  reason: string | null
}> {
  const ended = await run()
  if (ended.outcome.kind !== 'failure') throw new Error('expected a signed failure, got a response')
  const { dispatchKnowledge } = ended.outcome.failure.receipt.body
  const { reason } = await world.attempt(ended.attemptId)
  return { knowledge: dispatchKnowledge, state: ended.operation?.state, reason }
}

async function held(): Promise<{ held: number; executions: number }> {
  const view = await world.session.kernel.call('show_grant', { grantId: grant.grantId })
  return { held: view.held, executions: view.executions }
}

describe('a start that is denied after the preparation', () => {
  test.each<[string, string, () => Promise<void>]>([
    ['the grant was revoked at the kernel', 'grant_revoked', revokeAtKernel],
    ['the grant has expired, and with it the stream,', 'deadline_expired', () => sleep(3_200)],
  ])('because %s closes the stream, ends the attempt and compensates', async (_why, code, act) => {
    if (code === 'deadline_expired') grant = await newGrant(3)
    await held()
    const open = openDescriptorCount()
    actBefore('start', act)
    const { error, operation, attempt } = await refusedRun()
    expect(error).toMatchObject({ code, outcome: 'not_started' })
    expect(operation.state).toBe('compensated_before_dispatch')
    expect(attempt).toMatchObject({ state: 'failed', held: false })
    expect(await held()).toEqual({ held: 0, executions: 0 })
    await expect.poll(openDescriptorCount).toBe(open)
  })

  test('lets another prepare at once', async () => {
    actBefore('start', revokeAtKernel)
    await refusedRun()
    vi.restoreAllMocks()
    grant = await newGrant()
    before = { requests: before.requests + 1, decryptions: before.decryptions + 1 }
    expect(await run()).toMatchObject({ operation: { state: 'completed' } })
  })
})

describe('a grant that is revoked', () => {
  test('before anything is refused by the kernel, and nothing reaches the broker', async () => {
    await revokeAtKernel()
    expect(await refusalOf(() => run())).toMatchObject({ code: 'grant_revoked', outcome: 'not_started' })
  })

  test('at the broker only is declined at the preparation', async () => {
    await revokeAtBroker()
    const { error, operation, attempt } = await refusedRun()
    expect(error).toMatchObject({ code: 'authorization_denied', outcome: 'not_started' })
    expect(operation.state).toBe('compensated_before_dispatch')
    expect(attempt).toMatchObject({ state: 'failed', reason: 'revoked_by_broker' })
    expect(await world.causes(operation.operationId)).toContain(
      'preparation failed: tool_server_error: authorization_denied',
    )
  })

  test('at the broker only, after the preparation, is refused at consumption', async () => {
    actBefore('start', revokeAtBroker)
    expect(await recordedRun()).toEqual({
      knowledge: 'not_committed',
      state: 'not_accepted_after_dispatch_commit',
      reason: 'revoked_by_broker',
    })
  })

  test('at the kernel after the start is refused at consumption', async () => {
    actBefore('handoff', revokeAtKernel)
    const recorded = await recordedRun()
    expect(recorded.state).toBe('not_accepted_after_dispatch_commit')
    expect(['parent_not_live', 'revoked_by_authority']).toContain(recorded.reason)
  })
})

describe('a grant that expires', () => {
  test('before the preparation is declined', async () => {
    grant = await newGrant(2)
    actBefore('prepare', () => sleep(2_200))
    const { error, operation } = await refusedRun()
    expect(error).toMatchObject({ code: 'authorization_denied', outcome: 'not_started' })
    expect(operation.state).toBe('compensated_before_dispatch')
  })

  test('between start and handoff ends the stream, and no cage takes a dead one', async () => {
    grant = await newGrant(3)
    actBefore('handoff', () => sleep(3_200))
    const { error, operation, attempt } = await refusedRun()
    expect(error).toMatchObject({ code: 'cage_refused', outcome: 'not_started' })
    expect(operation.state).toBe('not_accepted_after_dispatch_commit')
    expect(attempt).toMatchObject({ state: 'failed', reason: 'deadline_expired' })
  })
})

describe('a tool', () => {
  test('that waits past the deadline gets the end of its stream, and is ended after its grace', async () => {
    grant = await newGrant(3)
    const request = { ...world.requested(), grantId: grant.grantId, toolGraceMs: 200 }
    const lazy = world.cage(['/bin/sh', '-c', 'sleep 30; cat /run/chio/request.frame >&8'])
    const ended = await runBrokered(world.session, { ...request, cage: lazy })
    expect(ended.outcome).toMatchObject({ kind: 'failure' })
    expect(ended.operation?.state).toBe('not_accepted_after_dispatch_commit')
    expect(await world.attempt(ended.attemptId)).toMatchObject({
      state: 'failed',
      reason: 'deadline_expired',
    })
    expect(ended.tool).toMatchObject({ exitCode: null, signal: 'SIGKILL' })
  })

  test.each<[string, string, string]>([
    ['writes nonsense', 'echo nonsense >&8; cat <&8', 'frame_length_mismatch'],
    ['changes one byte', 'tr 2 3 </run/chio/request.frame >&8; cat <&8', 'frame_mismatch'],
    ['writes half of it', 'head -c 100 /run/chio/request.frame >&8', 'frame_truncated'],
    ['writes it twice', TWICE, 'surplus_bytes'],
  ])('that %s is refused without a byte, and the reason is on record', async (_what, line, reason) => {
    const ended = await run(['/bin/sh', '-c', line])
    expect(ended.outcome).toMatchObject({ kind: 'failure' })
    expect(Buffer.from(ended.tool.stdout).toString()).toBe('')
    expect(await world.attempt(ended.attemptId)).toMatchObject({ state: 'failed', reason })
  })
})

describe('a cage that fails', () => {
  test('before the handoff ends a started operation as not accepted', async () => {
    actBefore('handoff', killOwnCages)
    const { error, operation, attempt } = await refusedRun()
    expect(error).toMatchObject({ code: 'cage_refused', outcome: 'not_started' })
    expect(operation.state).toBe('not_accepted_after_dispatch_commit')
    expect(attempt.state).toBe('failed')
  })

  test('before the start leaves nothing started', async () => {
    const cage = { ...world.cage(), tool: { path: '/usr/bin/absent', argv: ['absent'] } }
    const request = { ...world.requested(), grantId: grant.grantId, cage }
    const error = await refusalOf(() => runBrokered(world.session, request))
    expect(error).toMatchObject({ code: 'cage_refused', outcome: 'not_started' })
    expect(await held()).toEqual({ held: 0, executions: 0 })
  })

  test('at the exec of its tool ends the operation, and says so', async () => {
    const folder = openFolder()
    try {
      const program = join(folder.path, 'no-program')
      writeFileSync(program, '\x7fELF and nothing after it\n', 'latin1')
      chmodSync(program, 0o755)
      const { error, operation } = await refusedRun([program])
      expect(error).toMatchObject({ code: 'cage_refused', outcome: 'not_started' })
      expect(error.message).toContain(program)
      expect(operation.state).toBe('not_accepted_after_dispatch_commit')
    } finally {
      folder.remove()
    }
  })
})

/**
 * Kills the bwrap processes that this very process started, and waits until nothing of them lives: a killed bwrap
 * still has to be scheduled to die, and only then takes its cage with it.
 */
async function killOwnCages(): Promise<void> {
  const cages = childrenOf(process.pid).filter(child =>
    readFileSync(`/proc/${child}/comm`, 'utf8').startsWith('bwrap'),
  )
  const everyone = cages.flatMap(cage => [cage, ...descendantsOf(cage)])
  expect(everyone.length).toBeGreaterThan(cages.length)
  for (const cage of cages) process.kill(cage, 'SIGKILL')
  await expect.poll(() => everyone.filter(isAlive), { timeout: 10_000 }).toEqual([])
}

function childrenOf(pid: number): number[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number)
}

function descendantsOf(pid: number): number[] {
  return childrenOf(pid).flatMap(child => [child, ...descendantsOf(child)])
}

async function revokeAtKernel(): Promise<void> {
  const administrator = trialAdministrator(world.trial)
  await administrator.revokeAtKernel(grant.grantId).finally(() => administrator.close())
}

async function revokeAtBroker(): Promise<void> {
  const administrator = trialAdministrator(world.trial)
  await administrator.revokeAtBroker(grant.grantId, grant.credential).finally(() => administrator.close())
}
