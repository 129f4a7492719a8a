// The compiled chio-broker-mcp as a process: one verified result and exit 0, or one line of standard error and exit 1.
// A peer of the test's own sits at descriptor 8 in the broker's place.
import { describe, expect, test } from 'vitest'
import { executeFrameBody } from '../../protocol/attempt-request.js'
import { encode } from '../../protocol/codec.js'
import { BrokerExecuteResponse } from '../../protocol/execute-response.js'
import {
  acceptedFrame,
  ARGUMENTS,
  failedFrame,
  runServer,
  type ServerEnd,
  type ServerRun,
} from '../support/broker-mcp.js'
import { call, linesOf, session } from '../support/mcp-messages.js'
import { failure, response } from '../support/own-outcome.js'
import { execute, TENANT } from '../support/own-request.js'

const input = linesOf(session)

const success = acceptedFrame(encode(BrokerExecuteResponse, response()))

/** Whatever was said before, there is no result of a call and no error, and standard error is the one line. */
function expectFailedClosed(end: ServerEnd, code: string): void {
  expect(end.stderr).toBe(`chio-broker-mcp failed closed: ${code}\n`)
  expect(end.stdout).not.toContain('structuredContent')
  expect(end.stdout).not.toContain('"error"')
  expect(end.status).toBe(1)
}

describe('a call', () => {
  test('submits the exact frame once and prints the verified response, while its input stays open', async () => {
    const end = await runServer({
      input: linesOf([...session, 'what comes later']),
      reply: success,
      open: true,
    })
    expect({ status: end.status, stderr: end.stderr }).toEqual({ status: 0, stderr: '' })
    expect(Buffer.from(end.submitted ?? [])).toEqual(Buffer.from(executeFrameBody(execute, TENANT)))
    const lines = end.stdout.trimEnd().split('\n')
    expect(lines).toHaveLength(3)
    expect(JSON.parse(lines[2] ?? '')).toEqual({
      jsonrpc: '2.0',
      id: 2,
      result: {
        content: [],
        isError: false,
        structuredContent: JSON.parse(
          Buffer.from(encode(BrokerExecuteResponse, response())).toString(),
        ) as unknown,
      },
    })
  })

  test.concurrent.each<[string, Uint8Array | undefined, string]>([
    ['a signed failure', failedFrame(failure), 'authorization_denied'],
    ['the end of the stream', undefined, 'outcome_undetermined'],
  ])('fails closed after %s', async (_what, reply, code) => {
    const end = await runServer({ input, ...(reply !== undefined && { reply }) })
    expectFailedClosed(end, code)
    expect(end.submitted).not.toBeNull()
  })
})

describe('nothing is submitted', () => {
  test.concurrent.each<[string, ServerRun, string]>([
    ['with an argument missing', { input, args: ARGUMENTS.slice(2) }, 'invalid_request'],
    ['with descriptor 8 closed', { input, descriptor: 'closed' }, 'custody'],
    ['when its input ends inside the call', { input: input.subarray(0, -1) }, 'invalid_request'],
    [
      'when a message is too long',
      { input: linesOf([...session.slice(0, 3), 'x'.repeat(1_048_576), call]) },
      'invalid_request',
    ],
  ])('%s', async (_what, run, code) => {
    const end = await runServer({ reply: success, ...run })
    expectFailedClosed(end, code)
    expect(end.submitted).toBeNull()
  })
})
