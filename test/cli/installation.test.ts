// An installation from nothing by its own commands, as an unprivileged user: init, up, credential, capability, run;
// and what a second `up` says.
import { existsSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Command, documentOf } from '../support/chio.js'
import { processes } from '../support/needles.js'
import { startProvider, type TestProvider } from '../support/provider.js'
import { SingleUser } from '../support/single-user.js'

const SENTENCE = 'protects against the caged tool only, not against other processes of this user'

let user: SingleUser
let provider: TestProvider
let up: Command

beforeAll(async () => {
  user = new SingleUser()
  provider = await startProvider()
})
afterAll(async () => {
  await user?.remove()
  await provider?.close()
})

/** Processes that name this installation in their arguments. */
const ofInstallation = () => processes().filter(({ command }) => command.includes(user.state))

describe('a single user', () => {
  test('is told what the layout protects against before it is made', async () => {
    const refused = await user.say(['init', '--json'])
    expect(refused).toMatchObject({ status: 2, stdout: '' })
    expect(documentOf(refused.stderr)['sentence']).toContain(SENTENCE)
  })

  test('is not asked for together with clients, which it would not have', async () => {
    const refused = await user.say(['init', '--single-user', '--client', 'root', '--json'])
    expect(refused).toMatchObject({ status: 2, stdout: '' })
    expect(documentOf(refused.stderr)['sentence']).toContain('expected --client or --single-user, got both')
    expect(existsSync(user.state)).toBe(false)
  })

  test('makes an installation once, private to its user', async () => {
    const made = await user.say(['init', '--single-user', '--json'])
    expect(made).toMatchObject({ status: 0, stderr: '' })
    expect(documentOf(made.stdout)).toMatchObject({
      schema: 'chio.init.v1',
      state: user.state,
      singleUser: true,
    })
    for (const path of ['.', 'broker', 'kernel', 'run', 'admin', 'broker/keys', 'run/broker']) {
      expect([path, statSync(join(user.state, path)).mode & 0o7777]).toEqual([path, 0o700])
    }
    for (const name of readdirSync(join(user.state, 'kernel', 'keys'))) {
      expect(statSync(join(user.state, 'kernel', 'keys', name)).mode & 0o7777).toBe(0o600)
    }
    const again = await user.say(['init', '--single-user', '--json'])
    expect(again.status).toBe(1)
    expect(documentOf(again.stderr)).toMatchObject({ code: 'installation_exists' })
  })

  test('is told by status that nothing serves yet', async () => {
    const status = await user.say(['status'])
    expect(status.status).toBe(69)
    expect(status.stdout).toContain('single user')
  })

  test('brings both daemons up, which say what they protect against', async () => {
    user.addProvider(provider.localProvider())
    up = user.start(['up', '--state', user.state])
    await up.says('Serving ')
    expect(up.stderr).toContain(SENTENCE)
    expect(documentOf((await user.say(['status', '--json'])).stdout)).toMatchObject({
      schema: 'chio.status.v1',
      layout: 'single user',
      broker: { state: 'free' },
    })
  })

  test('is refused a second one with 73 by the name of the first', async () => {
    const second = await user.say(['up', '--json'])
    expect(second.status).toBe(73)
    const serving = ofInstallation().filter(({ command }) => command.includes('chio-kerneld'))
    expect(serving).toHaveLength(1)
    expect(second.stderr).toContain(`${serving[0]?.pid}`)
    expect(second.stderr.match(/store refused/g)).toHaveLength(1)
    expect(second.stderr).not.toContain('"event":')
    expect((await user.say(['status'])).status).toBe(0)
  })

  test('stores a credential, grants an endpoint and runs a tool in a cage with it', async () => {
    const stored = await user.say(
      ['credential', 'provision', 'issues', '--provider', 'p', '--placement', 'bearer'],
      {
        input: 'a-token-of-this-user\n',
      },
    )
    expect(stored).toMatchObject({ status: 0, stderr: '' })
    const url = ['--url', provider.url('/issues'), '--method', 'POST']
    const issued = await user.say(['capability', 'issue', '--credential', 'issues', ...url])
    expect(issued).toMatchObject({ status: 0, stderr: '' })
    const tool = ['--exec', 'once', '--', join(user.root, 'native', 'build', 'Release', 'chio-exec')]
    const ran = await user.say(['run', '--capability', issued.stdout.trim(), '--json', ...tool])
    expect(documentOf(ran.stdout)).toMatchObject({
      schema: 'chio.run.v1',
      kind: 'response',
      status: 200,
      operationState: 'completed',
      tool: { exitCode: 0 },
    })
    expect(ran.status).toBe(0)
    expect(provider.requests[0]?.header('authorization')).toBe('Bearer a-token-of-this-user')
  })

  test('calls an MCP server in a cage with it', async () => {
    const url = ['--url', provider.url('/issues'), '--method', 'POST']
    const again = await user.say(['capability', 'issue', '--credential', 'issues', ...url])
    const called = await user.say(['run', '--capability', again.stdout.trim(), '--mcp', '--json'])
    expect(documentOf(called.stdout)).toMatchObject({
      kind: 'response',
      mcp: { kind: 'verified' },
      tool: { exitCode: 0 },
    })
  })

  test('ends both daemons with their command, and leaves no process', async () => {
    expect(await up.stop()).toMatchObject({ status: 0 })
    await expect.poll(ofInstallation).toEqual([])
  })

  test('ends both as well when its terminal closes', async () => {
    up = user.start(['up', '--state', user.state])
    await up.says('Serving ')
    expect(await up.stop('SIGHUP')).toMatchObject({ status: 0, signal: null })
    await expect.poll(ofInstallation).toEqual([])
  })

  test('says which daemon was ended by a signal, and exits 1', async () => {
    up = user.start(['up', '--state', user.state])
    await up.says('Serving ')
    const kernel = ofInstallation().find(({ command }) => command.includes('chio-kerneld'))
    process.kill(kernel?.pid ?? 0, 'SIGKILL')
    const ended = await up.ended
    expect(ended.status).toBe(1)
    expect(ended.stderr).toContain(
      'chio: chio-kerneld was ended by SIGKILL; the other daemon is stopped as well',
    )
    await expect.poll(ofInstallation).toEqual([])
  })

  test('leaves no daemon behind when the command itself is killed', async () => {
    up = user.start(['up', '--state', user.state])
    await up.says('Serving ')
    await up.stop('SIGKILL')
    await expect.poll(ofInstallation, { timeout: 5_000 }).toEqual([])
  })
})
