// A credential that is disabled, as an operator does and sees it: nothing is sent with it any more, the list shows it,
// and whoever runs or grants with it is told.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { chio, documentOf, type Ended } from '../support/chio.js'
import { TrialWorld } from '../support/trial-world.js'

let world: TrialWorld
beforeAll(async () => {
  world = await TrialWorld.begin()
})
afterAll(() => world?.end())

const say = (...args: string[]): Promise<Ended> => chio([...args, '--state', world.trial.layout.state])

test('an id that nobody stored is refused by name', async () => {
  const refused = await say('credential', 'disable', 'nobody', '--json')
  expect(refused).toMatchObject({ status: 1, stdout: '' })
  expect(documentOf(refused.stderr)).toMatchObject({ code: 'credential_unavailable' })
})

test('a disabled credential sends nothing more; list, run and issue say so; repeating is safe', async () => {
  const { credentialId } = world.grant.credential
  for (let time = 0; time < 2; time += 1) {
    const disabled = await say('credential', 'disable', credentialId)
    expect(disabled).toMatchObject({ status: 0, stderr: '' })
    expect(disabled.stdout).toContain('is disabled: nothing is sent with it any more')
  }
  expect((await say('credential', 'list')).stdout).toMatch(/disabled$/m)
  const before = await world.touches()
  const run = await say('run', '--capability', world.grant.grantId, '--json')
  expect(run).toMatchObject({ status: 1, stdout: '' })
  expect(documentOf(run.stderr)).toMatchObject({ code: 'credential_unavailable', outcome: 'not_started' })
  expect(await world.touches()).toEqual(before)
  const url = ['--url', 'https://api.example.com/', '--method', 'POST']
  const issued = await say('capability', 'issue', '--credential', credentialId, ...url)
  expect(issued).toMatchObject({ status: 1, stdout: '' })
  expect(issued.stderr).toContain('which is disabled')
  expect((await say('status')).stdout).toContain('slot free')
})
