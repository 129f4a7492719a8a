// An answer that an output guard refused is not shown, whoever tells the run, and is never taken for one to repeat.
import { afterEach, expect, test, vi } from 'vitest'
import { report, type ToldRun } from '../../cli/run-report.js'
import type { HostSession } from '../../host/session.js'
import { catchOutput } from '../support/caught-output.js'
import { response } from '../support/own-outcome.js'

afterEach(() => {
  vi.restoreAllMocks()
  process.exitCode = undefined
})

const SECRET = 'words-of-the-provider'
const tool = {
  exitCode: 0,
  signal: null,
  stderr: Buffer.from(''),
  stdout: Buffer.from(SECRET),
  truncated: false,
}

function run(state: string): ToldRun {
  const answered = { ...response(), body: Buffer.from(SECRET) }
  return {
    attemptId: 'attempt',
    journalDirectory: '/journal',
    operation: { lastError: 'output guard size: too long', sharesArgumentsWith: [], state },
    operationId: 'a'.repeat(64),
    outcome: { frame: new Uint8Array(0), kind: 'response', response: answered },
    timeline: [],
    tool,
  } as unknown as ToldRun
}

async function told(state: string, json: boolean) {
  const spoken = catchOutput()
  await report({} as HostSession, run(state), { json, ownTool: true })
  return { exitCode: process.exitCode, text: spoken.text() }
}

test.each([true, false])(
  'denied after delivery (json: %s): the reason instead of the answer, and 75',
  async json => {
    const { exitCode, text } = await told('denied_after_delivery', json)
    expect(exitCode).toBe(75)
    expect(text).toContain('output guard size: too long')
    for (const form of [SECRET, Buffer.from(SECRET).toString('base64')]) expect(text).not.toContain(form)
  },
)

test.each([true, false])('completed (json: %s): the answer', async json => {
  const { exitCode, text } = await told('completed', json)
  expect(exitCode).toBeUndefined()
  expect(text).toContain(json ? Buffer.from(SECRET).toString('base64') : SECRET)
})
