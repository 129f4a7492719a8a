// A run that is told to end, or loses its terminal: what it says, how it ends, and what the owners have on record.
import { execFileSync } from 'node:child_process'
import { closeSync, constants, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { documentOf, startCommand } from '../support/chio.js'
import { answer } from '../support/provider.js'
import { TrialWorld } from '../support/trial-world.js'
import { standStill } from '../support/stop.js'

let world: TrialWorld
beforeAll(async () => {
  world = await TrialWorld.begin()
})
afterAll(() => world?.end())

const start = (...more: string[]) =>
  startCommand(['run', '--capability', world.grant.grantId, '--state', world.trial.layout.state, ...more])

/** Interrupts a run while the provider works on its request. */
async function whileItIsSent(signal: NodeJS.Signals, ...more: string[]) {
  let arrived: () => void = () => undefined
  const reached = new Promise<void>(resolve => (arrived = resolve))
  let release: () => void = () => undefined
  world.provider.behave(async ({ socket }) => {
    arrived()
    await new Promise<void>(resolve => (release = resolve))
    answer(socket, '{"late":true}')
  })
  const command = start(...more)
  await reached
  const ended = await command.stop(signal)
  release()
  world.provider.behave(({ socket }) => answer(socket, 'ok'))
  await expect.poll(async () => (await world.slot()).state).toBe('free')
  return ended
}

/** Node itself catches SIGINT and SIGTERM from its start; a hangup is caught by the command alone. */
function hearsHangup(pid: number): boolean {
  const caught = /^SigCgt:\t([0-9a-f]+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? '0'
  return (BigInt(`0x${caught}`) & 1n) === 1n
}

/** The writing end of a pipe, once somebody reads it; undefined before. */
function writerOf(fifo: string): number | undefined {
  try {
    return openSync(fifo, constants.O_WRONLY | constants.O_NONBLOCK)
  } catch {
    return undefined
  }
}

describe('a run that is interrupted', () => {
  test.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)(
    'by %s while it waits for its body ends at once',
    async signal => {
      const fifo = join(world.trial.layout.state, `body-${signal}`)
      execFileSync('mkfifo', [fifo])
      const command = start('--body', fifo)
      let writer: number | undefined
      await expect.poll(() => (writer = writerOf(fifo)), { timeout: 10_000 }).toBeDefined()
      expect(await command.stop(signal)).toMatchObject({ status: null, signal, stdout: '' })
      closeSync(writer ?? -1)
    },
  )

  test.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)(
    'by %s after its start says that it may have been sent, and which operation, and ends with 75',
    async signal => {
      const hits = world.provider.hits
      const ended = await whileItIsSent(signal)
      expect(ended).toMatchObject({ status: 75, signal: null, stdout: '' })
      const operationId = /chio operation outcome ([0-9a-f]{64})/.exec(ended.stderr)?.[1] ?? ''
      expect(ended.stderr).toMatch(/^chio: run interrupted; it may have been sent; operation /m)
      expect((await world.operation(operationId)).state).toBe('dispatch_committed')
      expect(world.provider.hits).toBe(hits + 1)
    },
  )

  test('after its start says the same as a document', async () => {
    const ended = await whileItIsSent('SIGTERM', '--json')
    expect(ended.status).toBe(75)
    // Before it stand the warnings of its start: the runs above are unresolved, and had the same arguments.
    const last = documentOf(ended.stderr.trimEnd().split('\n').at(-1) ?? '')
    expect(last).toMatchObject({ code: 'outcome_undetermined', outcome: 'unknown' })
    expect(last['operationId']).toMatch(/^[0-9a-f]{64}$/)
  })

  test('before its start says that nothing was started, ends with 1, and nothing was sent', async () => {
    const before = await world.touches()
    await standStill(world.trial.kernel.pid)
    try {
      const command = start('--json')
      await expect.poll(() => hearsHangup(command.pid), { timeout: 10_000 }).toBe(true)
      const ended = await command.stop('SIGHUP')
      expect(ended).toMatchObject({ status: 1, stdout: '' })
      expect(documentOf(ended.stderr)).toMatchObject({ code: 'interrupted', outcome: 'not_started' })
    } finally {
      process.kill(world.trial.kernel.pid, 'SIGCONT')
    }
    expect(await world.touches()).toEqual(before)
  })
})
