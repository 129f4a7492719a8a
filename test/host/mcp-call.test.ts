// One MCP call through real daemons, a real cage and a real provider. What a server says changes nothing: the outcome
// is the broker's record, also when the server lies about it.
import { copyFileSync, existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { cagePolicy, type CagePolicyChoices, type ResolvedTool, resolveTool } from '../../cage/index.js'
import { type BrokeredRun, runBrokered } from '../../host/brokered-run.js'
import { brokerMcpTool } from '../../host/mcp-program.js'
import { beforeStep } from '../support/host-steps.js'
import { runCaged } from '../support/cage.js'
import { HONEST, pythonServer, withResult } from '../support/mcp-servers.js'
import { TrialWorld } from '../support/trial-world.js'

const ENDED = 'MCP server refused: expected an answer before its end'

let world: TrialWorld
beforeAll(async () => {
  world = await TrialWorld.begin()
})
afterAll(() => world?.end())

const serverCage = (resolved: ResolvedTool, choices: Partial<CagePolicyChoices> = {}) =>
  cagePolicy({ ...resolved, input: 'pipe', identity: world.trial.identities.cage, ...choices })

async function callServer(resolved: ResolvedTool, toolGraceMs = 30_000): Promise<BrokeredRun> {
  const request = { ...world.requested(), cage: serverCage(resolved), mcp: true, toolGraceMs }
  return runBrokered(world.session, request)
}

const own = () => brokerMcpTool(world.session.pins.broker)

describe('chio-broker-mcp in its cage', () => {
  test('answers with the verified response and ends with 0', async () => {
    const before = await world.touches()
    const run = await callServer(own())
    expect(run.mcp).toEqual({ kind: 'verified' })
    expect(run.tool).toMatchObject({ exitCode: 0, signal: null })
    expect(Buffer.from(run.tool.stderr).toString()).toBe('')
    expect(run.outcome).toMatchObject({ kind: 'response', response: { status: 200 } })
    expect(run.operation?.state).toBe('completed')
    expect(await world.touches()).toEqual({
      requests: before.requests + 1,
      decryptions: before.decryptions + 1,
    })
  })

  test('is told nothing but its end when the broker signs a failure', async () => {
    beforeStep(async name => {
      if (name === 'handoff') await world.trial.kill('kernel')
    })
    let run: BrokeredRun
    try {
      run = await callServer(own())
    } finally {
      vi.restoreAllMocks()
      await world.trial.start('kernel')
    }
    expect(run.outcome).toMatchObject({
      kind: 'failure',
      failure: { diagnosticCode: 'chio.broker.authority_unavailable' },
    })
    expect(run.mcp).toEqual({ kind: 'refused', sentence: ENDED })
    expect(Buffer.from(run.tool.stderr).toString()).toBe(
      'chio-broker-mcp failed closed: authorization_denied\n',
    )
    expect(run.tool.exitCode).toBe(1)
  })

  test('fails closed with arguments that are not those of this installation', async () => {
    const { receiptKey } = world.session.pins.broker
    const other = ['--tenant-scope', 'another', '--tool-name', 'execute', '--receipt-signer', receiptKey]
    const run = await callServer(brokerMcpTool(world.session.pins.broker, other))
    expect(run.outcome).toMatchObject({
      kind: 'failure',
      failure: { receipt: { body: { dispatchKnowledge: 'not_started' } } },
    })
    expect(run.mcp?.kind).toBe('refused')
    expect(Buffer.from(run.tool.stderr).toString()).toBe(
      'chio-broker-mcp failed closed: outcome_undetermined\n',
    )
  })

  test('runs where the uid of the cage cannot reach its files', async () => {
    const closed = mkdtempSync(join(tmpdir(), 'chio-closed-'))
    try {
      const copied = own().files.map(({ source, at }, index) => ({
        copy: join(closed, String(index)),
        source,
        at,
      }))
      for (const { source, copy } of copied) copyFileSync(source, copy)
      const files = copied.map(({ copy, at }) => ({ source: copy, at }))
      const run = await callServer({ ...own(), files })
      expect(run.mcp).toEqual({ kind: 'verified' })
      expect(run.tool.exitCode).toBe(0)
    } finally {
      rmSync(closed, { recursive: true })
    }
  })

  test('brings exactly the files that it loads, and nobody can write them', async () => {
    const { files } = own()
    const script = 'cd /run/chio-cage/program; find . -type f | sort; find . -writable; ls /run/chio-cage'
    const { tool } = resolveTool('/bin/sh', ['-c', script])
    const { stdout } = await runCaged({ tool, files, exec: 'allowed' })
    const inside = files.map(({ at }) => at.replace('/run/chio-cage/program/', './')).sort()
    expect(stdout.trim().split('\n')).toEqual([...inside, 'init', 'program'])
    expect(files.every(({ source }) => existsSync(source))).toBe(true)
    const folders = new Set(inside.map(path => path.split('/').slice(1, -1).join('/')))
    expect([...folders].sort()).toEqual([
      '',
      'dist/cli',
      'dist/client',
      'dist/protocol',
      'node_modules/@noble/ed25519',
    ])
  })
})

describe("a user's own server", () => {
  test('that speaks the same sequence is called the same way', async () => {
    const run = await callServer(pythonServer(HONEST))
    expect(run.mcp).toEqual({ kind: 'verified' })
    expect(run.tool.exitCode).toBe(0)
    expect(run.outcome.kind).toBe('response')
  })

  test('that has the answer and says that it failed changes nothing', async () => {
    const run = await callServer(pythonServer(withResult("{**answered(document), 'isError': True}")))
    expect(run.mcp?.kind).toBe('refused')
    expect(run.outcome).toMatchObject({ kind: 'response', response: { status: 200 } })
    expect(run.operation?.state).toBe('completed')
  })

  test('that claims success without having submitted changes nothing', async () => {
    const before = await world.touches()
    const claim = `
question = until_called()
os.write(8, b'\\0\\0\\0\\2{}')
result(question, answered({'status': 200, 'body': [], 'headers': []}))
time.sleep(60)`
    const run = await callServer(pythonServer(claim))
    expect(run.mcp?.kind).toBe('refused')
    expect(run.outcome).toMatchObject({
      kind: 'failure',
      failure: { receipt: { body: { dispatchKnowledge: 'not_started' } } },
    })
    expect(await world.touches()).toEqual(before)
  })

  test('that floods instead of answering is killed; nothing was sent and the slot is free', async () => {
    const before = await world.touches()
    const run = await callServer(pythonServer("read()\nwhile True: os.write(1, b'x' * 65536)"))
    expect(run.mcp?.kind).toBe('refused')
    expect(run.tool.signal).toBe('SIGKILL')
    expect(run.outcome.kind).toBe('failure')
    expect(await world.touches()).toEqual(before)
    expect((await world.slot()).state).toBe('free')
  })

  test('that has the answer and never tells it is killed after its grace; the outcome stands', async () => {
    const run = await callServer(pythonServer('until_called()\nsubmit()\ntime.sleep(60)'), 100)
    expect(run.outcome.kind).toBe('response')
    expect(run.mcp).toEqual({ kind: 'refused', sentence: ENDED })
    expect(run.tool.signal).toBe('SIGKILL')
  })
})

describe('a run with --mcp', () => {
  test('commits its start before the handoff', async () => {
    const steps = (await callServer(pythonServer(HONEST))).timeline
    const at = (name: string) => steps.find(step => step.name === name)?.startMs ?? Number.NaN
    expect(at('start')).toBeLessThan(at('handoff'))
  })

  test('needs an input pipe, and says so before anything is asked', async () => {
    const cage = serverCage(pythonServer(HONEST), { input: 'null' })
    const run = () => runBrokered(world.session, { ...world.requested(), cage, mcp: true })
    await expect(run()).rejects.toThrow(/"cage\.input" expected 'pipe'/)
  })
})
