// chio operation outcome: what became of a run that nobody waited for. It reads, verifies and completes the journal,
// and never sends anything.
import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { buildRequest, reserve } from '../../host/admission.js'
import { nativePath } from '../../native/index.js'
import { chio, documentOf, type Ended } from '../support/chio.js'
import { startHost, untilItStands } from '../support/host-child.js'
import { answer } from '../support/provider.js'
import { BODY, TrialWorld } from '../support/trial-world.js'

let world: TrialWorld
beforeAll(async () => {
  world = await TrialWorld.begin()
})
afterAll(() => world?.end())

const outcome = (...args: string[]): Promise<Ended> =>
  chio(['operation', 'outcome', ...args, '--state', world.trial.layout.state])

/** A host that dies once its start was sent and its tool works, before it took the outcome. */
async function killedAfterHandoff(): Promise<string> {
  const tool = [nativePath('chio-exec')]
  const order = { grantId: world.grant.grantId, tool, timeoutMs: 2_000, moment: 'after outcome' } as const
  const host = startHost(world.trial, [order])
  const operationId = await untilItStands(host)
  await host.kill()
  return operationId ?? ''
}

describe('the recorded outcome of a run whose host died', () => {
  test('is told as its run would have told it, retained, and given to the kernel; asking again says the same', async () => {
    world.provider.behave(async ({ socket }) => {
      await sleep(100)
      answer(socket, '{"issue":7}')
    })
    const operationId = await killedAfterHandoff()
    const { hits } = world.provider
    const told = await outcome(operationId)
    expect(told).toMatchObject({ status: 0, stderr: '' })
    expect(told.stdout).toContain('verified outcome: HTTP 200, 11 bytes\nprovider says | {"issue":7}\n')
    expect(told.stdout).toMatch(/^state {5}completed$/m)
    const again = documentOf((await outcome(operationId, '--json')).stdout)
    expect(again).toMatchObject({ schema: 'chio.run.v1', kind: 'response', operationState: 'completed' })
    const kept = JSON.parse(readFileSync(join(String(again['journal']), 'outcome.json'), 'utf8')) as object
    expect(kept).toMatchObject({ operationId, census: null, status: 200 })
    expect((await world.operation(operationId)).state).toBe('completed')
    expect(world.provider.hits).toBe(hits)
  })

  test('is never believed without what the run retained before its start', async () => {
    const run = await world.run()
    rmSync(join(run.journalDirectory, 'registration.json'))
    const refused = await outcome(run.operationId, '--json')
    expect(refused).toMatchObject({ status: 1, stdout: '' })
    expect(documentOf(refused.stderr)).toMatchObject({ code: 'custody' })
  })
})

test('a journal that cannot be written hides no answer: 75 and never not started, until there is room', async () => {
  const body = 'x'.repeat(4_000)
  world.provider.behave(({ socket }) => answer(socket, body))
  const { hits } = world.provider
  const state = ['--state', world.trial.layout.state]
  const fileBytes = 24_576
  const run = await chio(['run', '--capability', world.grant.grantId, '--json', ...state], { fileBytes })
  const told = documentOf(run.stderr)
  expect(told).toMatchObject({ code: 'storage', outcome: 'completed' })
  expect(run.status).toBe(75)
  const operationId = String(told['operationId'])
  const again = await chio(['operation', 'outcome', operationId, '--json', ...state], { fileBytes })
  expect(documentOf(again.stderr)).toMatchObject({ code: 'storage', outcome: 'completed', operationId })
  expect(again.status).toBe(75)
  expect(await outcome(operationId)).toMatchObject({ status: 0, stderr: '' })
  expect((await world.operation(operationId)).state).toBe('completed')
  expect(world.provider.hits).toBe(hits + 1)
  world.provider.behave(({ socket }) => answer(socket, 'ok'))
})

test('an answer that was refused ends with 75 here as well', async () => {
  world.provider.behave(({ socket }) => answer(socket, world.token))
  const run = await world.run()
  world.provider.behave(({ socket }) => answer(socket, 'ok'))
  expect(await outcome(run.operationId)).toMatchObject({ status: 75, stderr: '' })
})

test('an operation without an attempt, one that does not exist and a word that is no id are refused', async () => {
  const { grantId } = world.grant
  const request = buildRequest(world.grant, { grantId, body: BODY, headers: [] })
  const { operationId } = await reserve(world.session, request, grantId)
  const unregistered = await outcome(operationId, '--json')
  expect(unregistered.status).toBe(1)
  expect(documentOf(unregistered.stderr)).toMatchObject({ code: 'attempt_unknown', outcome: 'not_started' })
  expect(documentOf((await outcome('a'.repeat(64), '--json')).stderr)).toMatchObject({
    code: 'operation_unknown',
  })
  expect(await outcome('x')).toMatchObject({ status: 2 })
})
