// A host's calls to its kernel over one connection: the kernel's own codes and sentences come through, an answer to
// another question does not, and of a lost call nothing is claimed.
import { randomBytes } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { KernelClient } from '../../client/kernel-client.js'
import { systemClock } from '../../native/clock.js'
import { decode, encode } from '../../protocol/codec.js'
import {
  KERNEL_RPC_RESPONSE_SCHEMA,
  KernelRequest,
  KernelResponse,
  type KernelStatus,
} from '../../protocol/kernel-rpc.js'
import type { FramedConnection } from '../../system/framed-connection.js'
import type { Listener } from '../../system/listener.js'
import { deadlineIn } from '../support/descriptors.js'
import { makeSocketFolder, serve, type SocketFolder } from '../support/test-listener.js'
import { refusalOf } from '../support/trial-world.js'

type Answer = Partial<KernelResponse> | 'hang up' | 'nonsense'

const STATUS: KernelStatus = {
  brokerReachable: true,
  clockFault: null,
  operations: [],
  ownerEpoch: 7,
  waiting: 0,
}
const OPERATION_ID = 'a'.repeat(64)

let place: SocketFolder
let listener: Listener
let client: KernelClient
let answers: (request: KernelRequest) => Answer
let connections: number

beforeEach(async () => {
  place = makeSocketFolder()
  connections = 0
  answers = () => ({ result: { kind: 'status', response: STATUS } })
  listener = await serve(place.path, { mode: 'stream', onConnection: converse })
  const uid = process.geteuid?.() ?? 0
  client = new KernelClient(
    { socketPath: place.path, uid, socketGid: null, tenantScope: 'tenant' },
    systemClock,
  )
})
afterEach(async () => {
  client.close()
  await listener.close()
  place.remove()
})

async function converse(connection: FramedConnection): Promise<void> {
  connections += 1
  for (;;) {
    const body = await connection.readFrame({ maximumFrameBytes: 1 << 20, deadlineBootNs: null })
    const request = decode(KernelRequest, body, 'request')
    const answer = answers(request)
    if (answer === 'hang up') return
    const response = {
      refusal: null,
      requestId: request.requestId,
      result: null,
      schema: KERNEL_RPC_RESPONSE_SCHEMA,
    }
    const bytes =
      answer === 'nonsense'
        ? Buffer.from('{"almost":"an answer"}')
        : encode(KernelResponse, { ...response, ...answer } as KernelResponse)
    await connection.writeFrame(bytes, deadlineIn(5_000))
  }
}

const ask = () => client.call('status', {})
const release = () => refusalOf(() => client.call('authorize_release', { operationId: OPERATION_ID }))

describe('a call to the kernel', () => {
  test('brings back the result of its own kind, all over one connection', async () => {
    expect(await Promise.all([ask(), ask(), ask()])).toEqual([STATUS, STATUS, STATUS])
    expect(await ask()).toEqual(STATUS)
    expect(connections).toBe(1)
  })

  test('refuses with the code, the sentence and the outcome that the kernel gave', async () => {
    answers = () => ({
      refusal: {
        code: 'grant_revoked',
        operationId: OPERATION_ID,
        outcome: 'not_started',
        receipt: null,
        sentence: 'grant refused: expected one that lives',
      },
    })
    expect(await refusalOf(ask)).toMatchObject({
      code: 'grant_revoked',
      operationId: OPERATION_ID,
      outcome: 'not_started',
      message: 'grant refused: expected one that lives',
    })
  })

  test('takes a code of tomorrow for a denial, and keeps its sentence', async () => {
    answers = () => ({
      refusal: {
        code: 'of_tomorrow',
        operationId: null,
        outcome: 'unknown',
        receipt: null,
        sentence: 'something new',
      },
    })
    expect(await refusalOf(ask)).toMatchObject({
      code: 'authorization_denied',
      outcome: 'unknown',
      message: 'something new',
    })
  })

  test('refuses the result of another operation', async () => {
    expect(await release()).toMatchObject({ code: 'kernel_unavailable', outcome: 'not_started' })
  })

  test('refuses an answer that is none, or to nobody, and connects anew for the next call', async () => {
    answers = () => 'nonsense'
    expect(await refusalOf(ask)).toMatchObject({ code: 'kernel_unavailable' })
    answers = () => ({
      requestId: randomBytes(32).toString('hex'),
      result: { kind: 'status', response: STATUS },
    })
    expect(await refusalOf(ask)).toMatchObject({ code: 'kernel_unavailable' })
    answers = () => ({ result: { kind: 'status', response: STATUS } })
    expect(await ask()).toEqual(STATUS)
    expect(connections).toBe(3)
  })

  test('that was lost says that no answer came, and claims no result', async () => {
    answers = () => 'hang up'
    expect(await release()).toMatchObject({ code: 'kernel_unavailable' })
    expect(connections).toBe(1)
  })

  test('says that the kernel is away when nobody serves', async () => {
    await listener.close()
    expect(await refusalOf(ask)).toMatchObject({ code: 'kernel_unavailable' })
    listener = await serve(place.path, { mode: 'stream', onConnection: converse })
  })

  test('is refused after the client was closed', async () => {
    client.close()
    expect(await refusalOf(ask)).toMatchObject({ code: 'kernel_unavailable' })
  })
})
