// The example tools, as they stand in the tree and in docs/fd8.md, in real cages: each submits the exact frame once,
// prints what the provider answered, and says by its exit code what else came.
import { execFileSync } from 'node:child_process'
import { chmodSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { cagePolicy, resolveTool } from '../../cage/index.js'
import { runBrokered } from '../../host/brokered-run.js'
import { packageRoot, shutdownWrite, writeFully } from '../../native/index.js'
import { encode } from '../../protocol/codec.js'
import { BrokerExecuteResponse } from '../../protocol/execute-response.js'
import { acceptedFrame, failedFrame } from '../support/broker-mcp.js'
import { openFolder, type Peer, requestBody, runCaged } from '../support/cage.js'
import { deadlineIn } from '../support/descriptors.js'
import { parsePage } from '../support/documents/markdown.js'
import { failure, response } from '../support/own-outcome.js'
import { answer } from '../support/provider.js'
import { TrialWorld } from '../support/trial-world.js'

const exampleAt = (name: string): string => join(packageRoot(), 'examples', 'tools', name)
const folder = openFolder()
const built = join(folder.path, 'submit')

/** As the first lines of its source tell. */
function build(): void {
  const source = readFileSync(exampleAt('submit.c'), 'utf8')
  const command = /Build: (cc .*) -o submit submit\.c$/m.exec(source)?.[1] ?? ''
  const [compiler = '', ...options] = command.split(' ')
  const strict = ['-Wall', '-Wextra', '-Wconversion', '-Werror']
  execFileSync(compiler, [...options, ...strict, '-o', built, exampleAt('submit.c')])
  chmodSync(built, 0o755)
}

const tools: [string, () => string][] = [
  ['in shell', () => exampleAt('submit.sh')],
  ['in Python', () => exampleAt('submit.py')],
  ['in C', () => built],
]

beforeAll(build)
afterAll(() => folder.remove())

const success = acceptedFrame(encode(BrokerExecuteResponse, response()))

async function runExample(path: string, serve: (peer: Peer) => Promise<void>) {
  const { finished, stdout, stderr } = await runCaged({ ...resolveTool(path), exec: 'allowed' }, serve)
  return { code: finished.exitCode, signal: finished.signal, stdout, stderr }
}

/** Takes the frame, answers with these bytes as they are, and ends its side. */
const answering = (reply: Uint8Array) => async (peer: Peer) => {
  expect(Buffer.from((await peer.receive()) ?? [])).toEqual(requestBody)
  await writeFully(peer.fd, reply, deadlineIn(20_000))
  shutdownWrite(peer.fd)
}

describe.each(tools)('the tool %s', (_language, path) => {
  test.concurrent('prints what the provider answered', async () => {
    const { code, stdout, stderr } = await runExample(path(), answering(success))
    expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: '{"number":41}', stderr: '' })
  })

  test.concurrent('ends with 1 after a signed failure', async () => {
    const { code, stdout } = await runExample(path(), answering(failedFrame(failure)))
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
  })

  test.concurrent.each<[string, Uint8Array]>([
    ['nothing', new Uint8Array(0)],
    ['half a length', success.subarray(0, 2)],
    ['a response that is cut', success.subarray(0, -1)],
    ['a length over the bound', Uint8Array.of(0x02, 0, 0, 1, 0x7b)],
  ])('ends with 75 after %s', async (_what, reply) => {
    const { code, signal, stdout } = await runExample(path(), answering(reply))
    expect({ code, signal, stdout }).toEqual({ code: 75, signal: null, stdout: '' })
  })

  test.concurrent('ends at once where there is neither request nor stream', () => {
    let code: unknown
    try {
      execFileSync(path(), { stdio: ['ignore', 'ignore', 'ignore'] })
    } catch (error) {
      code = (error as { status: number }).status
    }
    expect([66, 69]).toContain(code)
  })
})

describe('through broker and kernel', () => {
  let world: TrialWorld
  beforeAll(async () => {
    world = await TrialWorld.begin()
    world.provider.behave(({ socket }) => answer(socket, '{"issue":7}'))
  })
  afterAll(() => world?.end())

  test.each(tools)('the tool %s prints what the provider answered', async (_language, path) => {
    const run = await world.run([path()])
    expect(run.outcome.kind).toBe('response')
    expect(Buffer.from(run.tool.stdout).toString()).toBe('{"issue":7}')
    expect(run.tool).toMatchObject({ exitCode: 0, signal: null })
  })

  test('the MCP server is called and answers', async () => {
    const identity = world.trial.identities.cage
    const cage = cagePolicy({ ...resolveTool(exampleAt('mcp-server.py')), input: 'pipe', identity })
    const run = await runBrokered(world.session, {
      ...world.requested(),
      cage,
      mcp: true,
      toolGraceMs: 30_000,
    })
    expect(run.mcp).toEqual({ kind: 'verified' })
    expect(run.tool).toMatchObject({ exitCode: 0, signal: null })
  })
})

test('docs/fd8.md shows these very files', () => {
  const page = parsePage('docs/fd8.md', readFileSync(join(packageRoot(), 'docs', 'fd8.md'), 'utf8'))
  const shown = page.fences.filter(({ marker }) => marker.startsWith('file: '))
  expect(shown.map(({ marker }) => marker.slice('file: '.length))).toEqual([
    'examples/tools/submit.sh',
    'examples/tools/submit.py',
    'examples/tools/submit.c',
    'examples/tools/mcp-server.py',
  ])
  for (const { marker, text } of shown) {
    expect(text).toBe(readFileSync(join(packageRoot(), marker.slice('file: '.length)), 'utf8'))
  }
})
