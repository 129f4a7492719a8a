// No byte of a credential leaves the broker's vault and the provider's connection; nothing of the launcher's
// environment reaches a daemon or a cage. Searched for in every form, in everything that is written or can be read.
import { randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startTrial, type Trial } from '../../selftest/trial.js'
import { chio, documentOf, type Ended, startCommand } from '../support/chio.js'
import { descendants, findInFiles, formsIn, needlesOf, type ProcessWords } from '../support/needles.js'
import { answer, startProvider, type TestProvider } from '../support/provider.js'

const SECRET = `canary-credential-${randomBytes(18).toString('base64url')}`
const CANARY = `canary-environment-${randomBytes(18).toString('base64url')}`
const secretNeedles = needlesOf(SECRET)
const canaryNeedles = needlesOf(CANARY)

/** Says everything that a tool can find out about where it runs. */
const CURIOUS = [
  '/usr/bin/python3',
  '-c',
  `import os, sys
def show(path):
    try: sys.stdout.write(open(path, 'rb').read().decode('latin1'))
    except OSError as error: print(path, error.errno)
print(dict(os.environ))
for pid in [p for p in os.listdir('/proc') if p.isdigit()] + ['self']:
    for name in ('environ', 'cmdline', 'maps', 'mountinfo', 'status'): show(f'/proc/{pid}/{name}')
frame = open('/run/chio/request.frame', 'rb').read()
os.write(8, frame)
while chunk := os.read(8, 65536): sys.stdout.buffer.write(chunk)`,
]

let trial: Trial
let provider: TestProvider
let grantId: string
const log: string[] = []
const printed: Ended[] = []
const duringRun: ProcessWords[] = []
let launcher: number

const environment = { CHIO_TEST_CANARY: CANARY, AWS_SECRET_ACCESS_KEY: CANARY }

async function say(args: readonly string[], input?: string): Promise<Ended> {
  const given = [...args, '--state', trial.layout.state]
  const ended = await chio(given, { environment, ...(input !== undefined && { input }) })
  printed.push(ended)
  return ended
}

beforeAll(async () => {
  Object.assign(process.env, environment)
  provider = await startProvider({ behaviour: ({ socket }) => answer(socket, '{"issue":1}') })
  trial = await startTrial({ localProviders: [provider.localProvider()], onLogLine: line => log.push(line) })
})
afterAll(async () => {
  for (const name of Object.keys(environment)) delete process.env[name]
  await trial?.stop()
  await provider?.close()
})

describe('a search for a secret', () => {
  test('finds it in every form in which it could have been written', () => {
    const bytes = Buffer.from(SECRET)
    const written: [string, Buffer][] = [
      ['plain', Buffer.from(`x${SECRET}x`)],
      ['hex', Buffer.from(bytes.toString('hex'))],
      ['decimal bytes', Buffer.from(JSON.stringify({ secret: [...bytes] }))],
      ...[0, 1, 2].map(shift => {
        const whole = Buffer.concat([Buffer.alloc(shift, 'p'), bytes, Buffer.from('q')])
        return [`base64 at ${shift}`, Buffer.from(whole.toString('base64url'))] as [string, Buffer]
      }),
    ]
    for (const [form, haystack] of written) expect(formsIn(haystack, secretNeedles)).toEqual([form])
    expect(formsIn(randomBytes(4_096), secretNeedles)).toEqual([])
  })
})

describe('a credential', () => {
  test('enters by standard input alone and is used', async () => {
    const provisioned = await say(
      ['credential', 'provision', 'issues', '--provider', 'tracker', '--placement', 'bearer', '--json'],
      `${SECRET}\n`,
    )
    expect(provisioned).toMatchObject({ status: 0, stderr: '' })
    const url = provider.url('/issues')
    const issued = await say([
      'capability',
      'issue',
      '--credential',
      'issues',
      '--url',
      url,
      '--method',
      'POST',
      '--max',
      '9',
      '--json',
    ])
    grantId = (documentOf(issued.stdout)['grant'] as { grantId: string }).grantId
    const body = join(trial.layout.state, 'host', 'body.json')
    writeFileSync(body, '{"title":"it broke"}')
    const ran = await say(['run', '--capability', grantId, '--body', body])
    expect(ran).toMatchObject({ status: 0 })
    expect(provider.requests[0]?.header('authorization')).toBe(`Bearer ${SECRET}`)
  })

  test('is refused as an argument, and never taken from the environment', async () => {
    const args = ['credential', 'provision', 'other', '--provider', 'p', '--placement', 'bearer']
    expect(await chio([...args, '--state', trial.layout.state, '--secret', 'x'])).toMatchObject({ status: 2 })
    expect(await chio([...args, '--state', trial.layout.state, 'x'])).toMatchObject({ status: 2 })
    const empty = await chio([...args, '--state', trial.layout.state], {
      environment: { SECRET: 'x', CHIO_SECRET: 'x' },
    })
    expect(empty.status).toBe(2)
    expect(empty.stderr).toContain('secret refused')
  })

  test('is not in a process of ours while a request is under way', async () => {
    provider.behave(async ({ socket }) => {
      await sleep(500)
      duringRun.push(...descendants([trial.broker.pid, trial.kernel.pid, launcher]))
      answer(socket, '{"issue":2}')
    })
    const args = ['run', '--state', trial.layout.state, '--capability', grantId, '--', ...CURIOUS]
    const running = startCommand(args, { environment })
    launcher = running.pid
    printed.push(await running.ended)
    expect(printed.at(-1)).toMatchObject({ status: 0 })
    expect(duringRun.length).toBeGreaterThan(4)
    for (const { pid, environment: own, command } of duringRun) {
      expect([pid, formsIn(Buffer.concat([own, command]), secretNeedles)]).toEqual([pid, []])
    }
  })

  test('is not handed on when the provider says it back', async () => {
    provider.behave(({ socket }) => answer(socket, `you said ${SECRET}`))
    const echoed = await say(['run', '--capability', grantId])
    expect([1, 75]).toContain(echoed.status)
    expect(echoed.stdout).toContain('response')
    provider.behave(({ socket }) => answer(socket, Buffer.from(SECRET).toString('base64')))
    expect([1, 75]).toContain((await say(['run', '--capability', grantId])).status)
  })

  test('is in no output, no log and no file of the installation', async () => {
    await say(['credential', 'list', '--json'])
    await say(['capability', 'list', '--json'])
    await say(['run', '--capability', grantId, '--dry-run'])
    await say(['capability', 'revoke', grantId])
    await say(['run', '--capability', grantId])
    expect(
      formsIn(Buffer.from(printed.map(ended => ended.stdout + ended.stderr).join()), secretNeedles),
    ).toEqual([])
    expect(log.length).toBeGreaterThan(5)
    expect(formsIn(Buffer.from(log.join('\n')), secretNeedles)).toEqual([])
    expect(findInFiles(trial.layout.state, secretNeedles)).toEqual([])
  })
})

describe("the launcher's environment", () => {
  test('is in no daemon and in no process of the cage', () => {
    const others = duringRun.filter(({ pid }) => pid !== launcher)
    for (const { pid, environment: own, command } of others) {
      expect([pid, formsIn(Buffer.concat([own, command]), canaryNeedles)]).toEqual([pid, []])
    }
    if (process.geteuid?.() === 0) {
      const itself = duringRun.find(({ pid }) => pid === launcher)
      expect(formsIn(itself?.environment ?? Buffer.alloc(0), canaryNeedles)).toContain('plain')
    }
  })

  test('is in nothing that a tool could find out, nor in any output, log or file', () => {
    const said = Buffer.from(printed.map(ended => ended.stdout + ended.stderr).join())
    expect(said.includes('tool says | ')).toBe(true)
    expect(formsIn(said, canaryNeedles)).toEqual([])
    expect(formsIn(Buffer.from(log.join('\n')), canaryNeedles)).toEqual([])
    expect(findInFiles(trial.layout.state, canaryNeedles)).toEqual([])
  })
})
