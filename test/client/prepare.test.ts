// Preparing against a broker that answers wrongly in every way: the stream is closed, no descriptor is left, and the
// one connection that was made is the only one.
import { chmodSync, chownSync, rmSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { prepareDispatchConnection } from '../../client/prepare.js'
import type { BrokerPins } from '../../client/broker-pins.js'
import { systemClock } from '../../native/clock.js'
import { isBrokerError } from '../../protocol/errors.js'
import type { JsonValue } from '../../protocol/json.js'
import { BrokerWorld } from '../support/broker-world.js'
import { openDescriptorCount } from '../support/descriptors.js'
import {
  acceptedFrame,
  acknowledgementOf,
  declinedFrame,
  type FakeBroker,
  giveSocketTo,
  replaceSocket,
  startFakeBroker,
} from '../support/fake-broker.js'
import { SKIP_REASONS } from '../support/skips.js'
import type { TestAttempt } from '../support/test-attempt.js'
import { testWhen } from '../support/when.js'

const isRoot = process.geteuid?.() === 0
/** In the range that is left to transient users; nobody runs under it. */
const OTHER = { uid: 61_290, gid: 61_291 }

let world: BrokerWorld
let broker: FakeBroker
let attempt: TestAttempt

beforeEach(async () => {
  world = new BrokerWorld({ provider: false })
  broker = await startFakeBroker(world.socketPath)
  attempt = world.attempt()
})
afterEach(async () => {
  await broker.close()
  rmSync(world.folder, { recursive: true, force: true })
})

interface Refusal {
  readonly code: string
  readonly sentence: string
}

/** Prepares once, expects a refusal, and that it left nothing behind in this process or at the broker. */
async function refused(
  pins: BrokerPins = world.pins,
  connections: number | 'again and again' = 1,
  openedMeanwhile = 0,
): Promise<Refusal> {
  const open = openDescriptorCount()
  const error = await prepareDispatchConnection(pins, attempt.authorized('prepare'), systemClock).then(
    ({ stream }) => {
      stream.close()
      return 'a stream'
    },
    (cause: unknown) => cause,
  )
  if (!isBrokerError(error)) throw new Error(`expected a refusal, got ${String(error)}`, { cause: error })
  const made = connections === 'again and again' ? broker.connections : connections
  await expect.poll(() => [broker.connections, broker.closed]).toEqual([made, made])
  await expect.poll(openDescriptorCount).toBe(open + openedMeanwhile)
  return { code: error.code, sentence: error.message }
}

function answerWith(frame: Uint8Array): void {
  broker.answer = () => frame
}

describe('a preparation', () => {
  test('is accepted with the acknowledgement of its own registration, on one connection', async () => {
    answerWith(acceptedFrame(acknowledgementOf(attempt.registration)))
    const { stream } = await attempt.prepare()
    expect(broker.connections).toBe(1)
    expect(broker.operations).toEqual(['prepare_connection'])
    stream.close()
    await expect.poll(() => broker.closed).toBe(1)
  })

  const changes: [string, JsonValue][] = [
    ['attemptId', 'broker-attempt-of-another'],
    ['operationId', 'f'.repeat(64)],
    ['preparedAtUnixSeconds', 0],
    ['preparedAtUnixSeconds', Math.floor(Date.now() / 1_000) - 3_600],
    ['preparedAtUnixSeconds', Math.floor(Date.now() / 1_000) + 3_600],
    ['preparedDispatchId', `broker-prepared-dispatch-${'0'.repeat(64)}`],
    ['schema', 'chio.broker-prepare-dispatch-acknowledgement.v2'],
  ]
  test.each(changes)(
    'fails and closes its stream when %s of the acknowledgement alone is another',
    async (member, value) => {
      answerWith(acceptedFrame({ ...acknowledgementOf(attempt.registration), [member]: value }))
      const { code, sentence } = await refused()
      expect(code).toBe('authority_unavailable')
      expect(sentence).toContain(member)
    },
  )

  test.each(['attemptId', 'operationId', 'preparedAtUnixSeconds', 'preparedDispatchId', 'schema'])(
    'fails when %s is missing from the acknowledgement',
    async member => {
      const { [member]: _missing, ...rest } = acknowledgementOf(attempt.registration)
      answerWith(acceptedFrame(rest))
      expect(await refused()).toMatchObject({ code: 'authority_unavailable' })
    },
  )

  test('fails when the acknowledgement has one member more', async () => {
    answerWith(acceptedFrame({ ...acknowledgementOf(attempt.registration), note: 'kind regards' }))
    expect(await refused()).toMatchObject({ code: 'authority_unavailable' })
  })

  test('fails when the answer is for another operation, says yes with a code, or accepts with nothing', async () => {
    const document = acknowledgementOf(attempt.registration)
    const answers = [
      acceptedFrame(document, { operation: 'register_attempt' }),
      acceptedFrame(document, { errorCode: 'conflict' }),
      acceptedFrame(document, { response: new Uint8Array(0) }),
    ]
    for (const [index, frame] of answers.entries()) {
      answerWith(frame)
      expect(await refused(world.pins, index + 1)).toMatchObject({ code: 'authority_unavailable' })
    }
  })

  test('fails when the broker ends without an answer, inside one, or with bytes that are none', async () => {
    const whole = acceptedFrame(acknowledgementOf(attempt.registration))
    const answers = [
      new Uint8Array(0),
      whole.subarray(0, 3),
      whole.subarray(0, whole.length - 1),
      Buffer.concat([Buffer.from([0, 0, 0, 4]), Buffer.from('null')]),
      Buffer.from([0xff, 0xff, 0xff, 0xff]),
      Buffer.from('HTTP/1.1 200 OK\r\n\r\n'),
    ]
    for (const [index, frame] of answers.entries()) {
      answerWith(frame)
      expect(await refused(world.pins, index + 1)).toMatchObject({ code: 'authority_unavailable' })
    }
  })

  test.each([
    ['conflict', 'conflict'],
    ['authorization_denied', 'authorization_denied'],
    ['authority_unavailable', 'authority_unavailable'],
    ['invalid_request', 'invalid_request'],
    ['a_code_of_tomorrow', 'authorization_denied'],
  ])('declined with %s says %s', async (wireCode, code) => {
    answerWith(declinedFrame(wireCode))
    const refusal = await refused()
    expect(refusal.code).toBe(code)
    expect(refusal.sentence).toContain(wireCode)
  })

  test('says that the broker is away when nothing serves the socket, without a connection', async () => {
    await broker.close()
    const pins = world.pins
    expect(await refused(pins, 0)).toMatchObject({ code: 'broker_unavailable' })
    broker = await startFakeBroker(world.socketPath)
  })

  test('refuses another inode at the path after the answer, though the answer was right', async () => {
    let other: FakeBroker | undefined
    const replaced = new Promise<void>(resolve => {
      broker.answer = (_request, socket) => {
        void replaceSocket(world.socketPath).then(fake => {
          other = fake
          socket.end(acceptedFrame(acknowledgementOf(attempt.registration)))
          resolve()
        })
        return 'silence'
      }
    })
    const refusal = await refused(world.pins, 1, 1)
    await replaced
    expect(refusal.code).toBe('custody')
    expect(refusal.sentence).toContain('inode')
    expect(other?.connections).toBe(0)
    await other?.close()
  })
})

describe('before a byte is sent, a preparation refuses', () => {
  test('a socket that others may reach', async () => {
    for (const mode of [0o666, 0o660, 0o606, 0o777]) {
      chmodSync(world.socketPath, mode)
      expect(await refused(world.pins, 0)).toMatchObject({ code: 'custody' })
    }
  })

  test('a folder that others may enter', async () => {
    for (const mode of [0o755, 0o710, 0o701, 0o770]) {
      chmodSync(dirname(world.socketPath), mode)
      expect(await refused(world.pins, 0)).toMatchObject({ code: 'custody' })
    }
  })

  test('a plain file in the place of the socket', async () => {
    rmSync(world.socketPath)
    writeFileSync(world.socketPath, '', { mode: 0o600 })
    expect(await refused(world.pins, 0)).toMatchObject({ code: 'custody' })
    rmSync(world.socketPath)
  })

  testWhen(isRoot, SKIP_REASONS.needsRoot, 'a socket or a folder of another owner', async () => {
    chownSync(world.socketPath, OTHER.uid, 0)
    expect(await refused(world.pins, 0)).toMatchObject({ code: 'custody' })
    chownSync(world.socketPath, 0, 0)
    chownSync(dirname(world.socketPath), OTHER.uid, 0)
    expect(await refused(world.pins, 0)).toMatchObject({ code: 'custody' })
  })

  testWhen(isRoot, SKIP_REASONS.needsRoot, 'a listener of another uid behind the right socket', async () => {
    giveSocketTo(world.socketPath, { ...OTHER, shared: false })
    // Root's credentials may be those of a service manager whose daemon does not listen yet.
    const refusal = await refused({ ...world.pins, uid: OTHER.uid }, 'again and again')
    expect(refusal).toMatchObject({ code: 'peer_mismatch' })
    expect(refusal.sentence).toContain(`expected uid ${OTHER.uid}, got 0`)
    expect(broker.operations).toEqual([])
  })

  testWhen(
    isRoot,
    SKIP_REASONS.needsRoot,
    'a listener of another group behind the right socket',
    async () => {
      giveSocketTo(world.socketPath, { uid: 0, gid: OTHER.gid, shared: true })
      const refusal = await refused({ ...world.pins, socketGid: OTHER.gid })
      expect(refusal).toMatchObject({ code: 'peer_mismatch' })
      expect(refusal.sentence).toContain(`expected gid ${OTHER.gid}, got 0`)
      expect(broker.operations).toEqual([])
    },
  )
})
