// Random and changed frames at daemons that are processes: every one is answered or closed, nothing is a fault of the
// daemon, no descriptor is left, and afterwards it does its main job.
import { readdirSync, rmSync } from 'node:fs'
import { afterEach, describe, expect, test } from 'vitest'
import { systemClock } from '../../native/clock.js'
import { AuthenticatedAttemptRequest, executeEnvelope } from '../../protocol/attempt-request.js'
import {
  SignedAuthorityRequest,
  SignedAuthorityResponse,
  signAuthorityRequest,
} from '../../protocol/authority-rpc.js'
import { decode, encode } from '../../protocol/codec.js'
import { AdminAuthorization } from '../../protocol/administration.js'
import { encodeRequest } from '../../protocol/envelope.js'
import { encodeFrame } from '../../protocol/frame.js'
import { KernelRequest } from '../../protocol/kernel-rpc.js'
import { signingKey } from '../../protocol/keys.js'
import { SignedRegisterAttemptAuthorization } from '../../protocol/registration.js'
import { codecSamples } from '../../selftest/fuzz/codec-catalogue.js'
import { flood, type FloodResult, say } from '../../selftest/fuzz/hostile-frames.js'
import { BrokerProcess } from '../support/broker-process.js'
import { BrokerWorld } from '../support/broker-world.js'
import { isRoot } from '../support/cage.js'
import { fullCount, isFullRun } from '../support/counts.js'
import {
  clientOf,
  issueGrant,
  kernelConfig,
  makeKernelFolder,
  seed,
  TENANT,
  type TestKernel,
} from '../support/kernel.js'
import { provisionKernel } from '../../kernel/start-kernel.js'
import { startKernelChild } from '../support/kernel-child.js'
import { reserved } from '../support/brokered-operation.js'
import { soonBootNs } from '../support/raw-broker.js'
import { TENANT as BROKER_TENANT, type TestAttempt } from '../support/test-attempt.js'

const COUNT = fullCount(150, 100_000)
const SEED = 20_261_130
const TIMEOUT_MS = fullCount(120_000, 7_200_000)

const tidy: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const step of tidy.splice(0).reverse()) await step()
})

/** The figures of a full run are worth a line; those of a small one are not. */
function report(socket: string, { answered, closed }: FloodResult): void {
  if (isFullRun) console.log(`${socket}: ${answered} answered, ${closed} closed`)
}

/** Of a daemon that forbids dumps only root can tell; for another user the answers and the main job must do. */
const descriptorsOf = (pid: number | undefined): number =>
  isRoot ? readdirSync(`/proc/${pid}/fd`).length : 0
/** A connection to the authority, a file of the store: opened once. What leaks would be hundreds. */
const LASTING = 8

/** Connections of the last frames may still be closing. */
async function untilDescriptors(pid: number | undefined, most: number): Promise<void> {
  while (descriptorsOf(pid) > most + LASTING) await new Promise(resolve => setTimeout(resolve, 20))
}

describe(`${COUNT} random and changed frames`, () => {
  test('at the broker are answered or closed, and it executes after', { timeout: TIMEOUT_MS }, async () => {
    const world = new BrokerWorld({})
    tidy.push(() => world.close())
    await world.found()
    const broker = await new BrokerProcess(world).ready()
    tidy.push(() => broker.stop('SIGKILL'))
    await world.provision()
    // Of another grant: preparations that nobody uses hold up their own grant only.
    const flooded = world.attempt({ grantId: 'grant-of-the-flood' })
    const valid = brokerBodies(world, flooded)
    await flood({ path: world.socketPath, valid, count: 20, seed: SEED })
    const before = descriptorsOf(broker.child.pid)
    const result = await flood({ path: world.socketPath, valid, count: COUNT, seed: SEED + 1 })
    report('broker', result)
    expect(result.answered).toBeGreaterThan(0)
    expect(result.closed).toBeGreaterThan(0)
    await untilDescriptors(broker.child.pid, before)
    expect(broker.child.exitCode).toBeNull()
    expect(broker.lines.filter(line => line['event'] === 'fault')).toEqual([])
    const attempt = await world.prepared()
    expect((await attempt.preparation.stream.submit(soonBootNs())).response.accepted).toBe(true)
    expect(world.provider.hits).toBe(1)
  })

  test('at each socket of the kernel likewise, and it reserves and answers after', {
    timeout: TIMEOUT_MS,
  }, async () => {
    const { config, kernel, authorityBody, pid } = await kernelProcess()
    const requests = [...(codecSamples().get('KernelRequest') ?? [])].map(withTenant)
    const before = descriptorsOf(pid)
    const host = await flood({ path: config.hostSocketPath, valid: requests, count: COUNT, seed: SEED })
    const valid = [authorityBody(), ...(codecSamples().get('SignedAuthorityRequest') ?? [])]
    const authority = await flood({ path: config.authoritySocketPath, valid, count: COUNT, seed: SEED + 1 })
    report('kernel', host)
    report('authority', authority)
    expect(host.answered).toBeGreaterThan(0)
    expect(authority.closed).toBeGreaterThan(0)
    await untilDescriptors(pid, before)
    const grant = await issueGrant(kernel)
    expect((await reserved(kernel, grant)).operationId).toMatch(/^[0-9a-f]{64}$/)
    kernel.client.close()
    const answer = await say(config.authoritySocketPath, encodeFrame(authorityBody()))
    const { body } = decode(SignedAuthorityResponse, answer.subarray(4), 'answer')
    expect(body.result.kind).toBe('capabilities')
  })
})

/** One right request of every kind that the flood may change. */
function brokerBodies(world: BrokerWorld, attempt: TestAttempt): Uint8Array[] {
  const attempts = (['register', 'prepare', 'release'] as const).map(action => {
    const { authorization, registration, request } = attempt.authorized(action)
    return {
      authorization: encode(SignedRegisterAttemptAuthorization, authorization),
      operation: { register: 'register_attempt', prepare: 'prepare_connection', release: 'release_attempt' }[
        action
      ],
      payload: encode(AuthenticatedAttemptRequest, { registration, request }),
      tenantScope: BROKER_TENANT,
    }
  })
  const { request, authorization } = world.provisioning('another-secret-token', 2)
  const administered = { ...request, authorization: encode(AdminAuthorization, authorization) }
  const asked = ['slot_status', 'attempt_status', 'credential_list'].map((operation, index) => ({
    authorization: new Uint8Array(0),
    operation,
    payload: (codecSamples().get(STATUS_REQUESTS[index] ?? '') ?? [])[0] ?? new Uint8Array(0),
    tenantScope: BROKER_TENANT,
  }))
  return [...attempts, executeEnvelope(attempt.request, BROKER_TENANT), administered, ...asked].map(
    encodeRequest,
  )
}
const STATUS_REQUESTS = ['SlotStatusRequest', 'AttemptStatusRequest', 'CredentialListRequest']

async function kernelProcess() {
  const folder = makeKernelFolder()
  tidy.push(async () => rmSync(folder, { recursive: true, force: true }))
  const people = { caller: signingKey(seed()), administrator: signingKey(seed()), broker: signingKey(seed()) }
  const config = kernelConfig(folder, people)
  await provisionKernel(config, systemClock)
  const seeds = { kernel: seed(), authority: seed(), issuer: seed(), storage: seed() }
  const { child } = await startKernelChild(config, seeds)
  tidy.push(() => child.kill())
  const kernel = { ...people, client: clientOf(config) } as unknown as TestKernel
  const authorityBody = (): Uint8Array =>
    encode(
      SignedAuthorityRequest,
      signAuthorityRequest(
        {
          operation: { kind: 'capabilities', request: {} },
          requestId: 'a'.repeat(64),
          issuedAtUnixSeconds: Math.floor(systemClock.unixMs() / 1_000),
        },
        people.broker,
      ),
    )
  return { config, kernel, authorityBody, pid: child.process.pid }
}

function withTenant(body: Uint8Array): Uint8Array {
  return encode(KernelRequest, { ...decode(KernelRequest, body, 'request'), tenantScope: TENANT })
}
