// chio operation list, show, cancel and reconcile, explain and clock against a running kernel: what each prints, in
// text and as a document, and what the kernel refuses.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { listOperations } from '../../cli/operation.js'
import { buildRequest, reserve } from '../../host/admission.js'
import type { OperationView } from '../../protocol/kernel-rpc.js'
import { chio, documentOf, type Ended } from '../support/chio.js'
import { BODY, TrialWorld } from '../support/trial-world.js'

let world: TrialWorld
let completed: string

beforeAll(async () => {
  world = await TrialWorld.begin()
  completed = (await world.run()).operationId
})
afterAll(() => world?.end())

const operation = (...args: string[]): Promise<Ended> =>
  chio(['operation', ...args, '--state', world.trial.layout.state])

async function reserved(): Promise<string> {
  const { grantId } = world.grant
  const request = buildRequest(world.grant, { grantId, body: BODY, headers: [] })
  return (await reserve(world.session, request, grantId)).operationId
}

const wide = ({ stdout }: Ended): string[] => stdout.split('\n').filter(line => line.length > 80)

describe('chio operation list', () => {
  test('prints the newest first, in 80 columns', async () => {
    const open = await reserved()
    const listed = await operation('list')
    expect(listed).toMatchObject({ status: 0, stderr: '' })
    expect(wide(listed)).toEqual([])
    const ids = listed.stdout.split('\n').filter(line => /^[0-9a-f]{64}$/.test(line))
    expect(ids).toEqual([open, completed])
    expect(listed.stdout).toMatch(/^ {2}ready_to_dispatch {2}2\d{3}-\d\d-\d\dT/m)
    expect(listed.stdout).toMatch(/^ {2}awaits its start/m)
    const one = documentOf((await operation('list', '--json', '--limit', '1')).stdout)
    expect(one.schema).toBe('chio.operation-list.v1')
    expect((one['operations'] as OperationView[]).map(({ operationId }) => operationId)).toEqual([open])
  })

  test('marks what has the arguments of an unresolved one, and so does the report of a run', async () => {
    const open = await reserved()
    const warned: string[] = []
    const run = await world.run(undefined, { onWarning: ({ operationIds }) => warned.push(...operationIds) })
    expect(warned).toContain(open)
    expect(run.operation?.sharesArgumentsWith).toContain(open)
    expect((await operation('list')).stdout).toMatch(/same arguments as the unresolved\n {2}[0-9a-f]{64}$/m)
    const told = await operation('outcome', run.operationId)
    expect(told.stdout).toMatch(/^warning {3}the same arguments as operations whose effect is not known/m)
    expect(told.stdout).toContain(open)
    for (const { operationId, state } of (await world.session.kernel.call('list', { limit: 9 })).operations)
      if (state === 'ready_to_dispatch') await operation('cancel', operationId)
  })

  test.each(['0', '1001', 'all', '-1', '1e3'])('refuses --limit %s', async limit => {
    await expect(listOperations({ limit })).rejects.toMatchObject({ code: 'usage' })
  })
})

describe('chio operation show', () => {
  test('prints where it stands and why, in 80 columns, and the whole view as a document', async () => {
    const shown = await operation('show', completed)
    expect(shown).toMatchObject({ status: 0, stderr: '' })
    expect(wide(shown)).toEqual([])
    expect(shown.stdout).toMatch(new RegExp(`^operation {3}${completed}$`, 'm'))
    expect(shown.stdout).toMatch(/^state {7}completed$/m)
    expect(shown.stdout).toMatch(/^settlement {2}settled by the broker's record$/m)
    const document = documentOf((await operation('show', completed, '--json')).stdout)
    expect(document).toEqual({ schema: 'chio.operation.v1', operation: await world.operation(completed) })
  })

  test('refuses what is no id, and an id that the kernel does not hold', async () => {
    const wrong = await operation('show', 'x')
    expect(wrong).toMatchObject({ status: 2, stdout: '' })
    expect(wrong.stderr).toContain('64 lower-case hex digits')
    const unknown = await operation('show', 'a'.repeat(64), '--json')
    expect(unknown.status).toBe(1)
    expect(documentOf(unknown.stderr)).toMatchObject({ code: 'operation_unknown' })
  })
})

describe('chio operation cancel', () => {
  test('takes back what was not started, and repeating it says the same', async () => {
    const open = await reserved()
    for (const _time of [1, 2]) {
      const cancelled = documentOf((await operation('cancel', open, '--json')).stdout)
      expect(cancelled).toMatchObject({
        schema: 'chio.operation-cancelled.v1',
        operation: { operationId: open, state: 'compensated_before_dispatch' },
      })
    }
  })

  test('refuses what was started: the outcome stands', async () => {
    const refused = await operation('cancel', completed, '--json')
    expect(refused).toMatchObject({ status: 1, stdout: '' })
    expect(documentOf(refused.stderr)).toMatchObject({ code: 'operation_state' })
    expect((await world.operation(completed)).state).toBe('completed')
  })
})

describe('chio explain', () => {
  const explain = (...args: string[]): Promise<Ended> =>
    chio(['explain', ...args, '--state', world.trial.layout.state])
  /** A word that is longer than a line is there to be copied. */
  const wideText = (ended: Ended): string[] => wide(ended).filter(line => line.trim().includes(' '))

  test('says who moves it, what is spent and by which record, what happened, and what to do', async () => {
    const told = await explain(completed)
    expect(told).toMatchObject({ status: 0, stderr: '' })
    expect(wideText(told)).toEqual([])
    const text = told.stdout.replace(/\s+/g, ' ')
    for (const said of [
      'moved by nobody: it has ended',
      'by the dispatch commit of version 7',
      'completed at the broker',
      'next nothing: it is done; read its outcome: chio operation outcome',
    ]) {
      expect(text).toContain(said)
    }
    expect(text).toMatch(/history 2\S+ prepared: asked/)
  })

  test('says why the broker ended it, in the sentence of a run', async () => {
    const { operationId } = await world.run(['/bin/true'])
    const text = (await explain(operationId)).stdout.replace(/\s+/g, ' ')
    expect(text).toContain('failed at the broker')
    expect(text).toContain(
      'reason stream_closed (docs/refusals.md) stream: expected the frame before the end of the stream',
    )
  })

  test('finds it by its attempt too, and refuses what nobody holds', async () => {
    const { attemptId } = await world.operation(completed)
    const document = documentOf((await explain(String(attemptId), '--json')).stdout)
    expect(document).toMatchObject({
      schema: 'chio.operation-explained.v1',
      operation: { operationId: completed },
    })
    const unknown = await explain('a'.repeat(64), '--json')
    expect(documentOf(unknown.stderr)).toMatchObject({ code: 'operation_unknown' })
    expect(await explain('a b')).toMatchObject({ status: 2, stdout: '' })
  })

  test('shows what was stated of it, which changed no state', async () => {
    const stated = ['--provider', 'acted', '--statement', 'the issue is there']
    const kept = documentOf((await operation('reconcile', completed, ...stated, '--json')).stdout)
    expect(kept).toMatchObject({ schema: 'chio.operation-reconciled.v1', stated: { provider: 'acted' } })
    expect((await explain(completed)).stdout).toMatch(
      /^stated {6}2\S+ provider acted:\s+the issue is\s+there/m,
    )
    expect((await world.operation(completed)).state).toBe('completed')
  })

  test.each([
    ['--provider', 'maybe', '--statement', 'x'],
    ['--provider', 'acted', '--statement', ''],
  ])('a statement is refused with %s %s %s "%s"', async (...args) => {
    expect(await operation('reconcile', completed, ...args)).toMatchObject({ status: 2, stdout: '' })
  })
})

describe('chio clock', () => {
  const clock = (...args: string[]): Promise<Ended> =>
    chio(['clock', ...args, '--state', world.trial.layout.state])

  test('shows both hands, and has nothing to accept while the clock is believed', async () => {
    expect((await clock('show')).stdout).toMatch(/^wall clock {3}2\S+\nlast commit {2}2\S+\nbelieved: /)
    const accepted = documentOf((await clock('accept', '--json')).stdout)
    expect(accepted).toMatchObject({ schema: 'chio.clock-accepted.v1', commitIndex: null })
  })
})

describe('without a kernel', () => {
  test('exits 69', async () => {
    await world.trial.kill('kernel')
    expect(await operation('list')).toMatchObject({ status: 69, stdout: '' })
  })
})
