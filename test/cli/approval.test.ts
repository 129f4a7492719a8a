// A run under a grant that asks for approvals, with both daemons as processes: it says what it waits for, approvers see
// exactly that and agree or refuse by their keys, and without them nothing is sent.
import { statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { sha256Hex } from '../../protocol/digest.js'
import { issueTrialGrant } from '../../selftest/trial-grant.js'
import { APPROVERS } from '../support/approvers.js'
import { chio, type CommandOptions, documentOf, type Ended, startCommand } from '../support/chio.js'
import { temporaryFolder } from '../support/temporary-folder.js'
import { BODY, TrialWorld } from '../support/trial-world.js'

const SEEDS = { lead: 81, security: 82, stranger: 99 } as const
let world: TrialWorld
let folder: string
beforeAll(async () => {
  folder = temporaryFolder('chio-approvers-')
  for (const [name, byte] of Object.entries(SEEDS)) {
    writeFileSync(join(folder, name), new Uint8Array(32).fill(byte), { mode: 0o600 })
  }
  world = await TrialWorld.begin({ approvers: APPROVERS })
})
afterAll(() => world?.end())

const inState = (...args: string[]): string[] => [...args, '--state', world.trial.layout.state]
const approval = (args: readonly string[], options: CommandOptions = {}): Promise<Ended> =>
  chio(inState('approval', ...args), options)
const keyOf = (name: keyof typeof SEEDS): string[] => ['--key-file', join(folder, name)]

let count = 0
async function runOf(requiredApprovals: number, ...more: string[]) {
  const { grantId } = await issueTrialGrant(world.trial, {
    grantId: `grant-approved-${(count += 1)}`,
    maximumExecutions: 1,
    requiredApprovals,
    url: world.provider.url('/issues'),
  })
  const run = inState('run', '--capability', grantId, '--body', '-', ...more)
  return { grantId, started: startCommand(run, { input: BODY }) }
}

/** A run that waits, and the operation that it named. */
async function waiting(requiredApprovals: number) {
  const run = await runOf(requiredApprovals, '--wait', '50s')
  await run.started.says('chio approval show')
  return { ...run, operationId: /[0-9a-f]{64}/.exec(run.started.stderr)?.[0] ?? '' }
}

describe('a run under a grant that asks for two approvals', () => {
  test('waits, is shown as exactly what it is, and is sent once two agreed', async () => {
    const { grantId, operationId, started } = await waiting(2)
    const { hits } = world.provider
    const listed = documentOf((await approval(['list', '--json'])).stdout)
    expect(listed).toMatchObject({ approvals: [{ approved: 0, grantId, operationId, required: 2 }] })
    const shown = (await approval(['show', operationId])).stdout
    expect(shown).toMatch(/^request {5}POST https:\/\/\S+\/issues$/m)
    expect(shown).toContain(`body        ${BODY.length} bytes; SHA-256\n ${sha256Hex(BODY)}\n`)
    expect(shown).toContain('approvals   0 of 2')
    expect(shown).not.toContain(world.token)
    const first = await approval(['approve', operationId, ...keyOf('lead')])
    expect(first).toMatchObject({ status: 0, stderr: '' })
    expect(first.stdout).toContain('approved by lead: 1 of 2 agreed, approval_required')
    expect(world.provider.hits).toBe(hits)
    const input = new Uint8Array(32).fill(SEEDS.security)
    const second = await approval(['approve', operationId, '--json'], { input })
    expect(documentOf(second.stdout)).toMatchObject({ approverId: 'security', view: { approved: 2 } })
    const ended = await started.ended
    expect(ended).toMatchObject({ status: 0 })
    expect(ended.stdout).toContain('verified outcome: HTTP 200')
    expect(ended.stdout).toContain(operationId)
    expect(world.provider.hits).toBe(hits + 1)
  })

  test('ends with what was said when one refuses, and sends nothing', async () => {
    const { operationId, started } = await waiting(2)
    const { hits } = world.provider
    const denied = await approval(['deny', operationId, ...keyOf('lead')])
    expect(denied.stdout).toContain('denied by lead')
    const ended = await started.ended
    expect(ended).toMatchObject({ status: 1, stdout: '' })
    expect(ended.stderr).toContain('code approval_denied; outcome not started')
    expect((await world.operation(operationId)).state).toBe('compensated_before_dispatch')
    expect(world.provider.hits).toBe(hits)
  })

  test('gives its operation back when nobody waits for them', async () => {
    const { started } = await runOf(1, '--json')
    const ended = await started.ended
    expect(ended).toMatchObject({ status: 75, stdout: '' })
    const refused = documentOf(ended.stderr)
    expect(refused).toMatchObject({ code: 'approval_required', outcome: 'not_started' })
    const { state } = await world.operation(String(refused['operationId']))
    expect(state).toBe('compensated_before_dispatch')
  })
})

describe('chio approval', () => {
  test('takes no word of a key that has no say, nor of half a key', async () => {
    const { operationId, started } = await waiting(1)
    const foreign = await approval(['approve', operationId, ...keyOf('stranger')])
    expect(foreign.stderr).toContain('expected the key of an approver of this kernel (lead, security, owner)')
    const short = await approval(['approve', operationId], { input: new Uint8Array(31) })
    expect(short).toMatchObject({ status: 2 })
    expect((await world.operation(operationId)).state).toBe('approval_required')
    await started.stop()
    await world.session.kernel.call('cancel', { operationId })
  })

  test('makes a private key and prints its public half', async () => {
    const file = join(folder, 'new-approver')
    const made = documentOf((await chio(['approval', 'key', file, '--json'])).stdout)
    expect(made['publicKey']).toMatch(/^[0-9a-f]{64}$/)
    expect(statSync(file).mode & 0o777).toBe(0o600)
  })
})
