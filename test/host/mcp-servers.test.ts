// Servers of every kind in real cages, against the host's side of the one call: an answer stands or it does not, a
// server that leaves the sequence is killed, and nothing that it says is quoted. A peer of the test's own answers at
// descriptor 8 in the broker's place.
import { describe, expect, test } from 'vitest'
import { assertCallFits, McpCall, type McpBounds, type McpVerdict } from '../../host/mcp-call.js'
import { closeDescriptor, readFrame, socketPair, writeFully } from '../../native/index.js'
import { encode } from '../../protocol/codec.js'
import { BrokerExecuteResponse } from '../../protocol/execute-response.js'
import { encodeFrame } from '../../protocol/frame.js'
import { executeFrameBody } from '../../protocol/attempt-request.js'
import type { FinishedTool } from '../../cage/index.js'
import { acceptedFrame } from '../support/broker-mcp.js'
import { openTestCage } from '../support/cage.js'
import { HeldClock } from '../support/clock.js'
import { deadlineIn } from '../support/descriptors.js'
import { HONEST, pythonServer, withDocument, withResult } from '../support/mcp-servers.js'
import { response } from '../support/own-outcome.js'
import { execute, OWN_KEYS, registration, TENANT } from '../support/own-request.js'

const context = { request: execute, registration, receiptSigner: OWN_KEYS.receipt.publicKey }
const success = acceptedFrame(encode(BrokerExecuteResponse, response()))
const NOW_MS = response().receipt.body.issuedAtUnixSeconds * 1_000
const PATIENT: McpBounds = { openingMs: 60_000, callMs: 60_000 }

interface Spoken {
  readonly verdict: McpVerdict
  readonly tool: FinishedTool
}

async function speakWith(behaviour: string, bounds = PATIENT, nowMs = NOW_MS): Promise<Spoken> {
  const [peer, stream] = socketPair('stream')
  const waiting = await openTestCage({ ...pythonServer(behaviour), input: 'pipe' })
  try {
    const armed = await waiting.handOff(stream, encodeFrame(executeFrameBody(execute, TENANT)))
    closeDescriptor(stream)
    const running = armed.go()
    const call = new McpCall(running, { context, clock: new HeldClock(nowMs) }, bounds)
    const served = serve(peer)
    const verdict = await call.verdict
    const tool = await running.finish(60_000)
    await served
    return { verdict, tool }
  } finally {
    await waiting.close()
    closeDescriptor(peer)
  }
}

/** Answers one frame; a server that ends without submitting is no fault of the peer. */
async function serve(peer: number): Promise<void> {
  const limits = { maximumFrameBytes: 1 << 23, deadlineBootNs: deadlineIn(60_000) }
  const frame = await readFrame(peer, limits).catch(() => null)
  if (frame !== null) await writeFully(peer, success, deadlineIn(60_000)).catch(() => undefined)
}

describe('an answer stands', () => {
  test.concurrent.each<[string, string]>([
    ['of a server that does what it should', HONEST],
    [
      'of one that logs beside it',
      `notify('notifications/message')\n${HONEST.replace('sys.stdin.read()', "notify('notifications/message')")}`,
    ],
    [
      'of one without the flag that says that it is no error',
      withResult("{'content': [], 'structuredContent': document}"),
    ],
    [
      'of one that answers again, and floods, after its answer',
      `${HONEST.replace('sys.stdin.read()', '')}
result(question, {'content': [], 'isError': True})
for _ in range(2000): notify('notifications/message')
`,
    ],
  ])('%s', async (_what, behaviour) => {
    const { verdict, tool } = await speakWith(behaviour)
    expect(verdict).toEqual({ kind: 'verified' })
    expect({ code: tool.exitCode, stderr: Buffer.from(tool.stderr).toString() }).toEqual({
      code: 0,
      stderr: '',
    })
  })
})

const beforeItOpens = (what: string): string => `read()\n${what}\ntime.sleep(60)`
const beforeItLists = (what: string): string => `open_session()\nread()\n${what}\ntime.sleep(60)`
const LISTS = (tools: string): string => `open_session()\nresult(read(), ${tools})\ntime.sleep(60)`

describe('an answer does not stand, and its server is killed,', () => {
  test.concurrent.each<[string, string, RegExp]>([
    ['where it is no JSON', beforeItOpens("write('hello')"), /expected a value at character 0/],
    ['where it is empty', beforeItOpens("write('')"), /expected a value/],
    [
      'where it commands a terminal',
      beforeItOpens("write('\\x1b]0;owned\\x07\\x1b[2J')"),
      /expected a value/,
    ],
    ['where it is in a batch', beforeItOpens("write('[]')"), /one JSON-RPC 2\.0 message a line/],
    ['under another id', beforeItOpens("result({'id': 7}, OPENED)"), /an answer to initialize alone/],
    [
      'under an id of another kind',
      beforeItOpens("result({'id': '1'}, OPENED)"),
      /under the id of its request/,
    ],
    [
      'under the id of what was not asked yet',
      beforeItOpens("result({'id': 2}, LISTED)"),
      /to initialize alone/,
    ],
    [
      'where the server asks',
      beforeItOpens("say({'jsonrpc': '2.0', 'id': 1, 'method': 'ping'})"),
      /no request of its own/,
    ],
    [
      'where it is an error',
      beforeItOpens("say({'jsonrpc': '2.0', 'id': 1, 'error': {'code': 1, 'message': 'x'}})"),
      /not an error/,
    ],
    [
      'under another version',
      beforeItOpens("result({'id': 1}, {**OPENED, 'protocolVersion': '2024-11-05'})"),
      /2025-11-25/,
    ],
    [
      'without tools',
      beforeItOpens("result({'id': 1}, {**OPENED, 'capabilities': {}})"),
      /a server of tools/,
    ],
    [
      'where it comes twice',
      `question = read()\nresult(question, OPENED)\nresult(question, OPENED)\ntime.sleep(60)`,
      /to tools\/list alone/,
    ],
    ['where no tool is listed', LISTS("{'tools': []}"), /exactly one tool/],
    ['where two tools are', LISTS("{'tools': LISTED['tools'] * 2}"), /exactly one tool/],
    ['where there are more to list', LISTS("{**LISTED, 'nextCursor': 'x'}"), /exactly one tool/],
    ['where its tool has a name with an escape', LISTS("{'tools': [{'name': '\\x1b[2J'}]}"), /an identifier/],
    ['where it floods a line', beforeItLists("while True: os.write(1, b'x' * 65536)"), /at most \d+ bytes/],
    [
      'where it floods notifications',
      beforeItLists("while True: notify('notifications/message')"),
      /at most 64 messages/,
    ],
    [
      'where it floods long notifications',
      beforeItLists("while True: notify('n' * 200000)"),
      /at most \d+ bytes in all/,
    ],
    ['where the server ends before it', `open_session()`, /before its end/],
    ['where its body was changed', withDocument("document['body'][0] ^= 1"), /outcome body digest refused/],
    ['where its status was changed', withDocument("document['status'] = 200"), /outcome status refused/],
    [
      'where its receipt was changed',
      withDocument("document['receipt']['body']['requestBodyBytes'] += 1"),
      /refused/,
    ],
    [
      'where it has a member more',
      withDocument("document['\\x1b[2J'] = 1"),
      /unknown, missing or out of order/,
    ],
    [
      'where it has content',
      withResult("{**answered(document), 'content': [{'type': 'text', 'text': 'x'}]}"),
      /empty content/,
    ],
    ['where it is flagged', withResult("{**answered(document), 'isError': True}"), /no error flag/],
    ['where it has no document', withResult("{'content': []}"), /a structured response/],
  ])('%s', async (_what, behaviour, sentence) => {
    const { verdict } = await speakWith(behaviour)
    expect(verdict).toMatchObject({ kind: 'refused', sentence: expect.stringMatching(sentence) as string })
    expect(JSON.stringify(verdict)).not.toMatch(/owned|\\u001b/)
  })

  test.concurrent.each<[string, string, Partial<McpBounds>]>([
    ['that never comes', 'time.sleep(60)', { openingMs: 200 }],
    ['that never comes to the call', 'until_called()\ntime.sleep(60)', { callMs: 200 }],
    [
      'that is never asked for, since it reads nothing',
      "while True: sys.stderr.write('x' * 65536)",
      { openingMs: 200 },
    ],
  ])('%s', async (_what, behaviour, bounds) => {
    const { verdict, tool } = await speakWith(behaviour, { ...PATIENT, ...bounds })
    expect(verdict).toMatchObject({
      kind: 'refused',
      sentence: expect.stringMatching(/within 200 ms/) as string,
    })
    expect(tool.signal).toBe('SIGKILL')
  })
})

test('an answer of the future does not stand', async () => {
  const { verdict } = await speakWith(HONEST, PATIENT, NOW_MS - 1)
  expect(verdict).toMatchObject({
    kind: 'refused',
    sentence: expect.stringMatching(/between the capability and now/) as string,
  })
})

test('a call that is longer than a server takes is refused before anything is started', () => {
  const fits = { ...execute, request: { ...execute.request, body: new Uint8Array(200_000) } }
  expect(() => assertCallFits(fits)).not.toThrow()
  const long = { ...execute, request: { ...execute.request, body: new Uint8Array(524_288).fill(255) } }
  expect(() => assertCallFits(long)).toThrow(/at most 1048576 bytes.*without --mcp/)
})
