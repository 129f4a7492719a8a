// Every command against a running installation: one JSON document with its schema, and the exit codes 0, 1, 2, 69 and
// 75 where each belongs. The commands are processes of their own.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { PROGRAM } from '../support/broker-mcp.js'
import { chio, documentOf, type Ended } from '../support/chio.js'
import { answer } from '../support/provider.js'
import { TrialWorld } from '../support/trial-world.js'

let world: TrialWorld
let folder: string

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'chio-commands-'))
  world = await TrialWorld.begin()
})
afterAll(async () => {
  await world?.end()
  rmSync(folder, { recursive: true, force: true })
})

function say(args: readonly string[], input?: string): Promise<Ended> {
  const [tool, ...before] = [...splitTool(args)].reverse()
  const given = [...before.flat(), '--state', world.trial.layout.state, ...(tool ?? [])]
  return chio(given, input === undefined ? {} : { input })
}

/** The options end where the tool begins. */
function splitTool(args: readonly string[]): [string[], string[]] {
  const at = args.indexOf('--')
  return at === -1 ? [[...args], []] : [args.slice(0, at), args.slice(at)]
}

const run = (...more: string[]): string[] => ['run', '--capability', world.grant.grantId, ...more]

describe('a command that succeeds exits 0 and prints one document', () => {
  test.each<[string, string, () => string[]]>([
    ['status', 'chio.status.v1', () => ['status']],
    ['credential list', 'chio.credential-list.v1', () => ['credential', 'list']],
    ['capability list', 'chio.capability-list.v1', () => ['capability', 'list']],
    ['run --dry-run', 'chio.run-dry.v1', () => run('--dry-run')],
    ['run', 'chio.run.v1', () => run()],
  ])('%s: %s', async (_name, schema, args) => {
    const ended = await say([...args(), '--json'])
    expect(ended).toMatchObject({ status: 0, stderr: '' })
    expect(documentOf(ended.stdout).schema).toBe(schema)
  })

  test('receipt show and audit export, whose export verifies with the kernel key of the installation', async () => {
    const ran = documentOf((await say([...run(), '--json'])).stdout)
    const named = ['receipt', 'show', '--operation', String(ran['operationId']), '--transcript', '--json']
    const shown = documentOf((await say(named)).stdout)
    expect(shown).toMatchObject({
      schema: 'chio.receipt-shown.v1',
      receipt: { decision: { verdict: 'allow' }, metadata: { admission: { projected_state: 'completed' } } },
      transcript: { journal: ran['journal'] },
    })
    const kept = (shown['transcript'] as { files: { name: string }[] }).files.map(({ name }) => name)
    expect(kept).toEqual([
      'request.frame',
      'response.frame',
      'registration.json',
      'receipt.json',
      'outcome.json',
    ])
    const output = join(folder, 'export')
    const exported = await say(['audit', 'export', '--output', output, '--json'])
    expect(exported).toMatchObject({ status: 0, stderr: '' })
    expect(documentOf(exported.stdout)).toMatchObject({ schema: 'chio.audit-export.v1', uncovered: 0 })
    const pin = ['--trusted-kernel-pubkey', world.trial.layout.kernelPublicKey]
    const audited = await say(['audit', 'verify', output, ...pin])
    expect(audited.stdout).toMatch(/^Verified \d+ receipts and 1 checkpoints/)
    const again = await say(['receipt', 'show', (shown['receipt'] as { id: string }).id])
    expect(again.stdout).toContain('proven under checkpoint 1')
  })

  test('credential provision, capability issue and revoke, in the order of an operator', async () => {
    const provisioned = await say(
      ['credential', 'provision', 'second', '--provider', 'p', '--placement', 'header:x-token', '--json'],
      'a-second-secret',
    )
    expect(documentOf(provisioned.stdout)).toMatchObject({
      schema: 'chio.credential-provisioned.v1',
      credential: { credentialId: 'second', version: 1 },
    })
    const twice = await say(
      ['credential', 'provision', 'second', '--provider', 'p', '--placement', 'bearer', '--json'],
      'another-secret',
    )
    expect(twice).toMatchObject({ status: 1, stdout: '' })
    expect(documentOf(twice.stderr)).toMatchObject({ code: 'credential_exists' })
    const url = ['--url', 'https://example.com/x', '--method', 'get']
    const issued = await say(['capability', 'issue', '--credential', 'second', ...url, '--json'])
    const { schema, grant } = documentOf(issued.stdout) as { schema: string; grant?: { grantId: string } }
    expect(schema).toBe('chio.capability-issued.v1')
    const revoked = await say(['capability', 'revoke', grant?.grantId ?? '', '--json'])
    expect(documentOf(revoked.stdout)).toMatchObject({ schema: 'chio.capability-revoked.v1' })
    const again = await say(['capability', 'revoke', grant?.grantId ?? '', '--json'])
    expect(again.status).toBe(0)
    expect(await say(['run', '--capability', grant?.grantId ?? ''])).toMatchObject({ status: 1 })
  })

  test('a dry run shows a hole for the credential, and touches nothing', async () => {
    const before = await world.touches()
    const { stdout } = await say(run('--dry-run'))
    expect(stdout).toContain('[credential issue-tracker, bearer]')
    expect(stdout).not.toContain(world.token)
    expect(await world.touches()).toEqual(before)
  })

  test('a run tells the verified answer apart from what its tool says', async () => {
    world.provider.behave(({ socket }) => answer(socket, '{"issue":\u001b7}'))
    const line =
      'cat /run/chio/request.frame >&8; head -c 4 <&8 >/dev/null; printf "\\033[2Jlies"; echo aside >&2; exit 3'
    const ended = await say([...run(), '--', '/bin/sh', '-c', line])
    world.provider.behave(({ socket }) => answer(socket, 'ok'))
    expect(ended.status).toBe(0)
    expect(ended.stdout).toContain('verified outcome: HTTP 200')
    expect(ended.stdout).toContain('tool says | ')
    expect(ended.stdout).toContain('tool ended: exit 3')
    expect(ended.stdout).toContain('tool says (stderr) | aside')
    // oxlint-disable-next-line no-control-regex
    expect(ended.stdout).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/)
  })

  test.each<[string, string[]]>([
    ['chio-broker-mcp unless another is named', []],
    ['chio-broker-mcp by its name', ['--', 'chio-broker-mcp']],
    ['chio-broker-mcp by its path', ['--', PROGRAM]],
  ])('a run with --mcp calls %s', async (_what, server) => {
    const ended = await say([...run('--mcp', '--json'), ...server])
    expect(ended).toMatchObject({ status: 0, stderr: '' })
    expect(documentOf(ended.stdout)).toMatchObject({
      kind: 'response',
      status: 200,
      mcp: { kind: 'verified' },
      tool: { exitCode: 0 },
    })
  })

  test('a run with --mcp says that an answer does not stand, and shows no message of a server', async () => {
    const line = 'read -r question; printf "\\033[2J\\n"; echo aside >&2; read -r more'
    const ended = await say([...run('--mcp'), '--', '/bin/sh', '-c', line])
    expect(ended.status).toBe(1)
    expect(ended.stdout).toMatch(
      /^server answered: nothing that stands\n {2}MCP server refused: .+\nverified outcome: no response$/m,
    )
    // oxlint-disable-next-line no-control-regex
    expect(ended.stdout).not.toMatch(/\[2J|tool says \| |[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/)
  })

  test('a body comes from a file or from standard input, to the byte', async () => {
    writeFileSync(join(folder, 'body'), '{"from":"file"}')
    expect(await say(run('--body', join(folder, 'body')))).toMatchObject({ status: 0 })
    expect(world.provider.requests.at(-1)?.body.toString()).toBe('{"from":"file"}')
    expect(await say(run('--body', '-'), '{"from":"stdin"}')).toMatchObject({ status: 0 })
    expect(world.provider.requests.at(-1)?.body.toString()).toBe('{"from":"stdin"}')
  })
})

describe('a command that is refused or fails exits 1 with a stable code', () => {
  test.each<[string, string, () => string[]]>([
    ['an unknown grant', 'grant_unknown', () => ['run', '--capability', 'grant-of-nobody']],
    ['a header that the grant does not allow', 'invalid_request', () => run('--header', 'x-evil: 1')],
    ['a tool that is not there', 'tool_refused', () => [...run(), '--', '/usr/bin/absent']],
    [
      'a credential that is not stored',
      'credential_unavailable',
      () => ['capability', 'issue', '--credential', 'none', '--url', 'https://a.example/', '--method', 'GET'],
    ],
  ])('%s: %s', async (_name, code, args) => {
    const [before, tool] = splitTool(args())
    const ended = await say([...before, '--json', ...tool])
    expect(ended).toMatchObject({ status: 1, stdout: '' })
    expect(documentOf(ended.stderr)).toMatchObject({ schema: 'chio.error.v1', code, outcome: 'not_started' })
  })

  test('but 75 and not to be repeated where a provider answered what may not be handed on', async () => {
    world.provider.behave(({ socket }) => answer(socket, world.token))
    const ended = await say([...run(), '--json'])
    const told = await say(run())
    world.provider.behave(({ socket }) => answer(socket, 'ok'))
    expect([ended.status, told.status]).toEqual([75, 75])
    expect(documentOf(ended.stdout)['tool']).toMatchObject({ stderrBase64: '', truncated: false })
    const text = told.stdout.replace(/\s+/g, ' ')
    expect(text).toContain(
      'the provider was reached and may have acted; its answer was refused: credential_reflected; do not repeat',
    )
    expect(text).toContain('expected an answer that holds no form of the credential')
    expect(documentOf(ended.stdout)).toMatchObject({
      schema: 'chio.run.v1',
      kind: 'failure',
      dispatchKnowledge: 'committed',
      reason: 'credential_reflected',
    })
  })
})

describe('a command that is used wrongly exits 2 and does nothing', () => {
  test.each<[string, string[]]>([
    ['an unknown command', ['explode']],
    ['an unknown option', ['status', '--verbose']],
    ['a run without a capability', ['run']],
    ['a run with an unknown exec rule', ['run', '--capability', 'g', '--exec', 'often']],
    ['a selftest case that does not exist', ['selftest', 'broker', '--case', 'none']],
  ])('%s', async (_name, args) => {
    expect(await chio(args)).toMatchObject({ status: 2, stdout: '' })
  })

  const provision = ['credential', 'provision', 'x', '--provider', 'p', '--placement']
  const issue = 'capability issue --credential issue-tracker --url https://a.example/ --method GET'.split(' ')

  test.each<[string, () => string[]]>([
    ['a wait that is no span', () => run('--wait', 'soon')],
    ['a placement that does not exist', () => [...provision, 'cookie']],
    ['a maximum that is no number', () => [...issue, '--max', 'many']],
    ['a client that does not exist', () => [...issue, '--client', 'nobody-of-that-name']],
  ])('%s', async (_name, args) => {
    const ended = await say([...args(), '--json'])
    expect(documentOf(ended.stderr)).toMatchObject({ schema: 'chio.error.v1', code: 'usage' })
    expect(ended).toMatchObject({ status: 2, stdout: '' })
  })
})

describe('a command that finds a daemon away', () => {
  test('exits 75 when the broker dies on a request that it has sent', async () => {
    world.provider.behave(async () => {
      await world.trial.kill('broker')
      await sleep(50)
    })
    const ended = await say([...run(), '--json'])
    world.provider.behave(({ socket }) => answer(socket, 'ok'))
    expect(ended).toMatchObject({ status: 75, stdout: '' })
    expect(documentOf(ended.stderr)).toMatchObject({ schema: 'chio.error.v1', outcome: 'unknown' })
    expect(documentOf(ended.stderr)['operationId']).toMatch(/^[0-9a-f]{64}$/)
  })

  test('exits 69 with the broker away, and says which', async () => {
    const status = await say(['status', '--json'])
    expect(status.status).toBe(69)
    const { broker, kernel } = documentOf(status.stdout) as { broker?: object; kernel?: object }
    expect(broker).toHaveProperty('error')
    expect(kernel).not.toHaveProperty('error')
    const ended = await say([...run(), '--json'])
    expect(ended.status).toBe(69)
    expect(documentOf(ended.stderr)).toMatchObject({ code: 'broker_unavailable', outcome: 'not_started' })
    expect(await say(['credential', 'list'])).toMatchObject({ status: 69 })
  })

  test('exits 69 with the kernel away', async () => {
    await world.trial.start('broker')
    await world.trial.kill('kernel')
    expect(await say(['status'])).toMatchObject({ status: 69 })
    const ended = await say([...run(), '--json'])
    expect(ended.status).toBe(69)
    expect(documentOf(ended.stderr)).toMatchObject({ code: 'kernel_unavailable', outcome: 'not_started' })
    const revoked = await say(['capability', 'revoke', world.grant.grantId, '--json'])
    expect(revoked.status).toBe(69)
    const { broker, kernel } = documentOf(revoked.stdout) as { broker?: object; kernel?: object }
    expect(broker).toMatchObject({ error: null })
    expect(kernel).toMatchObject({ commitIndex: null })
  })

  test('exits 1 where there is no installation at all', async () => {
    const ended = await chio(['status', '--state', join(folder, 'nothing'), '--json'])
    expect(ended.status).toBe(1)
    expect(documentOf(ended.stderr)).toMatchObject({
      code: 'installation_missing',
      next: expect.stringContaining('chio init') as string,
    })
  })
})
