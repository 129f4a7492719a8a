// Every refusal of a tool call that begins `durable admission failed:`, as a kernel gives it and as docs/kernel.md tells it.
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { afterEach, expect, test } from 'vitest'
import { systemClock } from '../../../native/clock.js'
import type { Clock } from '../../../protocol/clock.js'
import { signingKey } from '../../../protocol/keys.js'
import type { ToolCallRequest } from '../../../protocol/tool-call.js'
import type { CallAnswer } from '../../../protocol/tool-call-rpc.js'
import { seed, type TestKernel, type TestKernelOptions } from '../../support/kernel.js'
import {
  callKernel,
  callUnder,
  contextAt,
  preflight,
  reservedCall,
  reserveWith,
  startWith,
  tokenOf,
} from '../../support/tool-call.js'

const PREFIX = 'durable admission failed: '
const PAGE = fileURLToPath(new URL('../../../docs/kernel.md', import.meta.url))

/** Code and sentence of each row, as the page has them. */
function rowsOfPage(): string[] {
  const [, section = ''] = readFileSync(PAGE, 'utf8').split('## What durable admission refuses')
  const rows = section.split('\n').filter(line => line.startsWith('| `'))
  return rows.map(row => {
    const [, code = '', sentence = ''] = row.split('|').map(cell => cell.trim())
    return `${code.replaceAll('`', '')}: ${sentence}`
  })
}

/** A refusal with its ids and numbers taken out. */
function told({ check, code, reason }: CallAnswer): string {
  expect(check).toBe('admission')
  expect(reason?.startsWith(PREFIX)).toBe(true)
  const sentence = (reason ?? '').slice(PREFIX.length)
  return `${code}: ${sentence.replaceAll(/[0-9a-f]{64}/g, 'ID').replaceAll(/\b\d+\b/g, 'N')}`
}

let kernel: TestKernel
let passedMs = 0
let wallAheadMs = 0
const clock: Clock = {
  bootNs: () => systemClock.bootNs() + BigInt(passedMs) * 1_000_000n,
  unixMs: () => systemClock.unixMs() + passedMs + wallAheadMs,
}
afterEach(() => kernel.remove())

async function serve(options: TestKernelOptions = {}): Promise<void> {
  kernel = await callKernel({ clock, ...options })
}

const fresh = (): ToolCallRequest => callUnder(tokenOf(kernel))

/** A call that was preflighted, and what was answered. */
async function preflighted() {
  const request = fresh()
  return { answer: await preflight(kernel, request), request }
}

/** The same request by another agent, which this process cannot be through its own socket. */
function byStranger(request: ToolCallRequest): Promise<CallAnswer> {
  const stranger = { callerPublicKey: signingKey(seed()).publicKey, uid: 1 }
  return kernel.running.kernel.calls.preflight(stranger, { context: contextAt(1), request })
}

async function ofIdentity(): Promise<CallAnswer[]> {
  const { answer, request } = await preflighted()
  const other = await preflighted()
  const changed = { ...request, params: { note: 'another' } }
  const ready = await reservedCall(kernel, other.request)
  const { executionNonce } = answer
  if (executionNonce === null) throw new Error('expected a nonce')
  const nonce = {
    ...executionNonce.nonce,
    bound_to: { ...executionNonce.nonce.bound_to, request_id: 'nobody' },
  }
  return [
    await reserveWith(kernel, fresh(), answer),
    await startWith(kernel, request, { executionNonce: { ...executionNonce, nonce } }),
    await reserveWith(kernel, changed, answer),
    await byStranger(request),
    await startWith(kernel, { ...other.request, params: { note: 'another' } }, ready),
    await reserveWith(kernel, request, { executionNonce: null }),
    await reserveWith(kernel, request, ready),
  ]
}

async function ofContextAndState(): Promise<CallAnswer[]> {
  const { answer, request } = await preflighted()
  const ready = await preflighted()
  const started = await reserveWith(kernel, ready.request, ready.answer)
  const gone = await preflighted()
  await kernel.client.call('cancel', { operationId: gone.answer.operationId as string })
  return [
    await reserveWith(kernel, request, answer, contextAt(0)),
    await reserveWith(kernel, request, answer, { ...contextAt(2), session_id: 'another' }),
    await reserveWith(kernel, request, answer, contextAt(1, ['public'])),
    await startWith(kernel, request, answer),
    await startWith(kernel, ready.request, started),
    await preflight(kernel, gone.request),
  ]
}

async function ofTime(): Promise<CallAnswer[]> {
  const { answer, request } = await preflighted()
  passedMs += 31_000
  const late = await reserveWith(kernel, request, answer)
  wallAheadMs = 60_000
  const jumped = await preflight(kernel, fresh())
  wallAheadMs = 0
  return [late, jumped]
}

test('each is a row of the page, and each row of the page is one', async () => {
  await serve()
  const plain = [...(await ofIdentity()), ...(await ofContextAndState()), ...(await ofTime())]
  await kernel.remove()
  await serve({ nonce: { capacity: 1, ttlSeconds: 30 }, onSharedArguments: 'refuse' })
  const request = fresh()
  const ready = await reservedCall(kernel, request)
  const full = await reservedCall(kernel, fresh())
  const shared = await startWith(kernel, request, ready)
  expect([...plain, full, shared].map(told).sort()).toEqual(rowsOfPage().sort())
})
