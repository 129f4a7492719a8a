#!/usr/bin/env node
// npm run demo: the whole path on this machine, with a loopback provider, both daemons and a tool in a
// cage, and one line for each promise that was kept. Its own STATE, keys and sockets; leaves nothing.
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { prepareDispatchConnection } from '../client/prepare.js'
import { type AdmittedOperation, authorize, buildRequest, readGrant, reserve } from '../host/admission.js'
import { type BrokeredRun, runBrokered } from '../host/brokered-run.js'
import type { HostSession } from '../host/session.js'
import { abandon } from '../host/settlement.js'
import { packageRoot } from '../native/index.js'
import { systemClock } from '../native/clock.js'
import { BrokerError, isBrokerError } from '../protocol/errors.js'
import { type IssueProvider, startIssueProvider } from '../selftest/issue-provider.js'
import { startTrial, type Trial } from '../selftest/trial.js'
import { grantTrial } from '../selftest/trial-grant.js'
import { startupHygiene } from '../system/startup.js'
import { type DemoPromise, promisesOf, type ToolReport } from './demo-promises.js'
import { asksForJson, fail, milliseconds } from './output.js'
import { toolCage } from './tool-cage.js'

const TOKEN_PREFIX = 'demo-token-'
const REQUEST = join(packageRoot(), 'examples', 'requests', 'issue.json')
const TOOL = join(packageRoot(), 'examples', 'tools', 'file-issue.py')
const SLOT_POLL_MS = 2

async function demo(): Promise<void> {
  const token = `${TOKEN_PREFIX}${randomBytes(24).toString('hex')}`
  const provider = await startIssueProvider({ token })
  try {
    const trial = await startTrial({ localProviders: [provider.local] })
    try {
      await demonstrate(trial, provider, token)
    } finally {
      await trial.stop()
    }
  } finally {
    await provider.close()
  }
}

async function demonstrate(trial: Trial, provider: IssueProvider, token: string): Promise<void> {
  introduce(trial, provider)
  const session = trial.openHost()
  try {
    const { grantId } = await grantTrial(trial, { url: provider.url, token, maximumExecutions: 2 })
    const requested = { grantId, body: readFileSync(REQUEST), headers: [] }
    const rival = await registerRival(session, requested)
    const command = [TOOL, TOKEN_PREFIX.split('').reverse().join('')]
    const cage = toolCage({ command, exec: 'once' }, trial.identities)
    const running = runBrokered(session, { ...requested, cage })
    const [run, declined] = await Promise.all([running, declineRival(session, rival, running)])
    await abandon(session, rival)
    show(promisesOf({ run, report: reportOf(run), provider, declined, token }))
    showTimeline(run)
  } finally {
    session.close()
  }
}

function introduce(trial: Trial, provider: IssueProvider): void {
  const { broker, kernel, cage } = trial.identities
  console.log(`provider   ${provider.url} on loopback, with its own certificate authority`)
  console.log(
    `daemons    chio-kerneld pid ${trial.kernel.pid} uid ${kernel.uid}, chio-brokerd pid ${trial.broker.pid} uid ${broker.uid}`,
  )
  console.log(`tool       file-issue.py (Python) in a cage under uid ${cage?.uid ?? process.geteuid?.()}`)
  if (trial.copied) console.log('program    copied to a folder that the other uids can reach')
}

/** A second operation, registered but not prepared: it will ask for the slot while the first one holds it. */
async function registerRival(
  session: HostSession,
  requested: Parameters<typeof buildRequest>[1],
): Promise<AdmittedOperation> {
  const { grant } = await readGrant(session, requested.grantId)
  const reservation = await reserve(session, buildRequest(grant, requested), requested.grantId)
  const admitted = await authorize(session, reservation)
  await session.broker.register(admitted.register)
  return admitted
}

/** Asks for the slot as soon as it is held. @returns the code of the refusal, or null when it was granted. */
async function declineRival(
  session: HostSession,
  rival: AdmittedOperation,
  first: Promise<unknown>,
): Promise<string | null> {
  let isOver = false
  first.then(
    () => (isOver = true),
    () => (isOver = true),
  )
  while (!isOver && (await session.broker.slotStatus()).state !== 'waiting') {
    await new Promise(resolve => setTimeout(resolve, SLOT_POLL_MS))
  }
  try {
    const { stream } = await prepareDispatchConnection(session.pins.broker, rival.prepare, systemClock)
    stream.close()
    return null
  } catch (error) {
    if (isBrokerError(error)) return error.code
    throw error
  }
}

function reportOf(run: BrokeredRun): ToolReport {
  const lines = Buffer.from(run.tool.stdout).toString('utf8').trim().split('\n')
  const entries = lines.map(line => JSON.parse(line) as { name: string; value: unknown })
  return Object.fromEntries(entries.map(({ name, value }) => [name, value])) as unknown as ToolReport
}

function show(promises: readonly DemoPromise[]): void {
  console.log('')
  for (const { holds, sentence } of promises) console.log(`${holds ? 'kept  ' : 'BROKEN'}  ${sentence}`)
  if (promises.some(promise => !promise.holds)) process.exitCode = 1
}

function showTimeline(run: BrokeredRun): void {
  console.log('\ntimeline of the operation')
  for (const { name, startMs, durationMs } of [...run.timeline].sort((a, b) => a.startMs - b.startMs)) {
    console.log(`  ${startMs.toFixed(1).padStart(8)} ms  ${name.padEnd(10)} ${milliseconds(durationMs)}`)
  }
}

/** It takes none: what somebody wanted of it would not happen. */
function assertNoArguments([first]: readonly string[]): void {
  if (first === undefined) return
  throw new BrokerError('usage', `demo refused: expected no arguments, got ${first}`)
}

try {
  assertNoArguments(process.argv.slice(2))
  startupHygiene({ environment: {} })
  await demo()
} catch (error) {
  fail(error, asksForJson(process.argv))
}
