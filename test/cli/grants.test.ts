// What an operator reads of grants: lists in 80 columns that mark what is over, a dry run that says whether the run
// would be refused, and a revocation that a slip of the pen does not make.
import { renameSync } from 'node:fs'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { grantEnd } from '../../cli/grant-state.js'
import { chio, documentOf, type Ended } from '../support/chio.js'
import { TrialWorld } from '../support/trial-world.js'

let world: TrialWorld
beforeAll(async () => {
  world = await TrialWorld.begin()
})
afterAll(() => world?.end())

const say = (...args: string[]): Promise<Ended> => chio([...args, '--state', world.trial.layout.state])
const dry = (...more: string[]): Promise<Ended> =>
  say('run', '--capability', world.grant.grantId, '--dry-run', ...more)

test('a grant is ended by its revocation, its time, its last use and its last hold, in this order', () => {
  const view = { executions: 0, grant: world.grant, held: 0, revoked: false }
  const { expiresAtUnixSeconds: end, maximumExecutions: all } = world.grant
  expect(grantEnd(view, end - 1)).toBeNull()
  expect(grantEnd({ ...view, executions: all - 1 }, end - 1)).toBeNull()
  expect(grantEnd({ ...view, executions: all - 1, held: 1 }, end - 1)?.word).toBe('held')
  expect(grantEnd({ ...view, executions: all }, end - 1)).toMatchObject({ code: 'grant_exhausted' })
  expect(grantEnd({ ...view, executions: all }, end)).toMatchObject({ code: 'grant_expired' })
  expect(grantEnd({ ...view, revoked: true }, end)).toMatchObject({ code: 'grant_revoked' })
})

test('a list fits 80 columns and needs no key of the administrator', async () => {
  const { adminKey } = world.trial.layout
  renameSync(adminKey, `${adminKey}.away`)
  try {
    const listed = await say('capability', 'list')
    expect(listed).toMatchObject({ status: 0, stderr: '' })
    expect(listed.stdout).toMatch(new RegExp(`^${world.grant.grantId} {2}0 of 100 used$`, 'm'))
    expect(listed.stdout.split('\n').filter(line => line.length > 80)).toEqual([])
  } finally {
    renameSync(`${adminKey}.away`, adminKey)
  }
})

test('a header that the grant does not allow is refused with the ones that it does', async () => {
  const refused = await dry('--header', 'x-evil: 1')
  expect(refused).toMatchObject({ status: 1, stdout: '' })
  expect(refused.stderr).toMatch(
    /header x-evil refused: expected (no header|a header that the grant allows \()/,
  )
})

test('an unknown grant is not revoked, and the broker is not told', async () => {
  const refused = await say('capability', 'revoke', 'grant-of-nobody', '--json')
  expect(refused).toMatchObject({ status: 1, stdout: '' })
  expect(documentOf(refused.stderr)).toMatchObject({ code: 'grant_unknown', outcome: 'not_started' })
})

test('a capability token is ended by its id, also before it was ever shown here, and again', async () => {
  const first = documentOf(
    (await say('capability', 'revoke', 'token-of-nobody-yet', '--token', '--json')).stdout,
  )
  expect(first).toMatchObject({
    schema: 'chio.token-revoked.v1',
    capabilityId: 'token-of-nobody-yet',
    newlyRevoked: true,
  })
  const again = await say('capability', 'revoke', 'token-of-nobody-yet', '--token')
  expect(again).toMatchObject({ status: 0, stderr: '' })
  expect(again.stdout).toMatch(/^kernel: revoked before, commit \d+$/m)
})

test('a dry run says of a revoked grant that its run would be refused, and the list marks it', async () => {
  expect(await dry()).toMatchObject({ status: 0 })
  expect(await say('capability', 'revoke', world.grant.grantId)).toMatchObject({ status: 0 })
  const told = await dry()
  expect(told.status).toBe(1)
  expect(told.stdout).toContain('A run would be refused: the grant was revoked.')
  const { refusal } = documentOf((await dry('--json')).stdout)
  expect(refusal).toMatchObject({ code: 'grant_revoked' })
  expect((await say('capability', 'list')).stdout).toContain('0 of 100 used, revoked')
})
