// A server that is kept waiting for its call, spoken with by the official MCP client over the library's own pipes:
// handed over before the start, started when the call is about to be sent, the outcome taken from the broker.
import { Client } from '@modelcontextprotocol/client'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { cagePolicy, type ResolvedTool } from '../../cage/index.js'
import { type LaunchedRun, launchBrokered } from '../../host/launched-run.js'
import { brokerMcpTool } from '../../host/mcp-program.js'
import { codeOf } from '../support/descriptors.js'
import { HONEST, pythonServer } from '../support/mcp-servers.js'
import { LaunchedTransport } from '../support/mcp-transport.js'
import { refusalOf, TrialWorld } from '../support/trial-world.js'

let world: TrialWorld
beforeAll(async () => {
  world = await TrialWorld.begin()
})
afterAll(() => world?.end())

const own = (): ResolvedTool => brokerMcpTool(world.session.pins.broker)

async function launch(resolved: ResolvedTool): Promise<LaunchedRun> {
  const cage = cagePolicy({ ...resolved, input: 'pipe', identity: world.trial.identities.cage })
  return launchBrokered(world.session, { ...world.requested(), cage, toolGraceMs: 30_000 })
}

async function connected(run: LaunchedRun): Promise<Client> {
  const client = new Client({ name: 'host', version: '1' })
  await client.connect(new LaunchedTransport(run))
  return client
}

async function call(client: Client, run: LaunchedRun) {
  const { tools } = await client.listTools()
  expect(tools).toHaveLength(1)
  await run.start()
  return client.callTool({ name: tools[0]?.name ?? '', arguments: { ...run.callArguments } })
}

describe('the official client', () => {
  test.each<[string, () => ResolvedTool]>([
    ['chio-broker-mcp', own],
    ["a user's own server", () => pythonServer(HONEST)],
  ])('makes the one call of %s, and the outcome is the record', async (_name, server) => {
    const before = await world.touches()
    const run = await launch(server())
    try {
      expect((await world.slot()).state).toBe('waiting')
      const client = await connected(run)
      expect(await world.touches()).toEqual(before)
      const result = await call(client, run)
      expect(() => run.assertAnswer(result as never)).not.toThrow()
      expect(() => run.assertAnswer({ ...result, content: [{}] } as never)).toThrow(/empty content/)
      await client.close()
      const ended = await run.finish()
      expect(ended.outcome).toMatchObject({ kind: 'response', response: { status: 200 } })
      expect(ended.operation?.state).toBe('completed')
      expect(ended.tool).toMatchObject({ exitCode: 0, signal: null })
      expect((await world.touches()).requests).toBe(before.requests + 1)
    } finally {
      await run.close()
    }
  })

  test('is closed upon, without an error message, by what has no place in the one call', async () => {
    const run = await launch(own())
    try {
      const client = await connected(run)
      await expect(client.callTool({ name: 'execute', arguments: {} })).rejects.toThrow(/closed/i)
    } finally {
      await run.close()
    }
    expect((await world.operation(run.operationId)).settlesAtUnixMs).toBeNull()
    expect((await world.slot()).state).toBe('free')
  })
})

describe('a server that waits', () => {
  test('is refused with a signed failure when it submits before the start, and nothing is sent', async () => {
    const before = await world.touches()
    const hasty = `
frame = open('/run/chio/request.frame', 'rb').read()
os.write(8, frame)
answer = json.loads(exactly(int.from_bytes(exactly(4), 'big')))
write(str(answer['errorCode']))`
    const run = await launch(pythonServer(hasty))
    const said: string[] = []
    run.stdout.onChunk(chunk => said.push(Buffer.from(chunk).toString()))
    await run.stdout.ended
    expect(said.join('')).toBe('chio.broker.authorization_denied\n')
    await run.start()
    const { outcome, operation } = await run.finish()
    expect(outcome).toMatchObject({
      kind: 'failure',
      failure: { receipt: { body: { dispatchKnowledge: 'not_committed', stage: 'capture' } } },
    })
    expect(operation?.state).toBe('not_accepted_after_dispatch_commit')
    expect(await world.touches()).toEqual(before)
  })

  test('is killed when its start is denied, and nothing is sent', async () => {
    const before = await world.touches()
    const run = await launch(own())
    await connected(run)
    await world.session.kernel.call('cancel', { operationId: run.operationId }).catch(() => undefined)
    const refusal = await refusalOf(() => run.start())
    expect(refusal).toMatchObject({ outcome: 'not_started', operationId: run.operationId })
    await run.stdout.ended
    expect(await world.touches()).toEqual(before)
    expect((await world.slot()).state).toBe('free')
    expect(await codeOf(() => run.finish())).toBe('prepared_stream_consumed')
    await run.close()
  })

  test('is given up by its host: killed, its operation released, its slot free', async () => {
    const before = await world.touches()
    const run = await launch(own())
    await run.close()
    await run.stdout.ended
    expect((await world.slot()).state).toBe('free')
    expect(await world.touches()).toEqual(before)
    expect((await world.operation(run.operationId)).settlesAtUnixMs).toBeNull()
    expect(await codeOf(() => run.start())).toBe('prepared_stream_consumed')
  })

  test('is started once, and finished only after its start', async () => {
    const run = await launch(pythonServer(HONEST))
    expect(await codeOf(() => run.finish())).toBe('prepared_stream_consumed')
    await run.start()
    expect(await codeOf(() => run.start())).toBe('prepared_stream_consumed')
    await run.close()
    expect((await world.slot()).state).toBe('free')
  })
})
