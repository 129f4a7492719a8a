// An administrator's commands: signed as a whole, believed only when the broker's own receipt verifies, and of no use
// to anybody else.
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Administrator } from '../../client/administrator.js'
import { systemClock } from '../../native/clock.js'
import { signingKey } from '../../protocol/keys.js'
import { type BrokerWorld, startWorld } from '../support/broker-world.js'
import { acceptedFrame, startFakeBroker } from '../support/fake-broker.js'
import { GRANT_ID } from '../support/test-attempt.js'
import { refusalOf } from '../support/trial-world.js'

let world: BrokerWorld
beforeAll(async () => {
  world = await startWorld()
})
afterAll(() => world.close())

interface Overrides {
  readonly key?: Buffer
  readonly subject?: string
  readonly receiptKey?: Buffer
  readonly socketPath?: string
}

function administrator(overrides: Overrides = {}): Administrator {
  const uid = process.geteuid?.() ?? 0
  const { receiptKey, socketPath = world.socketPath } = overrides
  return new Administrator({
    broker: {
      ...world.pins,
      socketPath,
      ...(receiptKey && { receiptKey: signingKey(receiptKey).publicKey }),
    },
    kernel: { socketPath: '/absent/sock', uid, socketGid: null, tenantScope: world.pins.tenantScope },
    key: overrides.key === undefined ? world.keys.admin : signingKey(overrides.key),
    subject: overrides.subject ?? 'operator',
    clock: systemClock,
  })
}

const secret = (): Buffer => Buffer.from('another-token')
const credential = (version: number) => ({ credentialId: 'issues', provider: 'tracker', version })
const placement = { kind: 'bearer_authorization' } as const

describe('an administrator', () => {
  test('stores a credential and gets a receipt that verifies', async () => {
    const receipt = await administrator().provision({
      credential: credential(2),
      placement,
      secret: secret(),
    })
    expect(receipt.body).toMatchObject({
      operation: 'provision',
      outcome: 'applied',
      credential: credential(2),
    })
    const listed = await administrator().credentials()
    expect(listed.map(stored => stored.credential.version)).toContain(2)
    expect(JSON.stringify(listed)).not.toContain('another-token')
  })

  test('does not believe a receipt that another key signed', async () => {
    const misled = administrator({ receiptKey: randomBytes(32) })
    const refusal = await refusalOf(() =>
      misled.provision({ credential: credential(3), placement, secret: secret() }),
    )
    expect(refusal).toMatchObject({ code: 'authorization_denied', outcome: 'unknown' })
  })

  test('does not know of a change whose receipt cannot be read', async () => {
    const socketPath = join(world.folder, 'unreadable', 'sock')
    const fake = await startFakeBroker(socketPath)
    fake.answer = () => acceptedFrame({}, { operation: 'provision', response: Buffer.from('null') })
    const refusal = await refusalOf(() =>
      administrator({ socketPath }).provision({ credential: credential(6), placement, secret: secret() }),
    )
    expect(refusal).toMatchObject({ code: 'broker_unavailable', outcome: 'unknown' })
    await fake.close()
  })

  test('does not believe the receipt of another command, though it is rightly signed', async () => {
    const earlier = await world.provision('a-third-token', 4)
    const socketPath = join(world.folder, 'fake', 'sock')
    const fake = await startFakeBroker(socketPath)
    fake.answer = () => acceptedFrame({}, { operation: 'provision', response: earlier })
    const misled = administrator({ socketPath })
    for (const version of [4, 5]) {
      const refusal = await refusalOf(() =>
        misled.provision({ credential: credential(version), placement, secret: secret() }),
      )
      expect(refusal).toMatchObject({ code: 'authorization_denied', outcome: 'unknown' })
      expect(refusal.message).toContain('mutation receipt requestId refused')
    }
    await fake.close()
  })

  test('is refused with another key or another subject, and nothing is stored', async () => {
    for (const impostor of [administrator({ key: randomBytes(32) }), administrator({ subject: 'root' })]) {
      const refusal = await refusalOf(() =>
        impostor.provision({ credential: credential(9), placement, secret: secret() }),
      )
      expect(refusal.code).toBe('authorization_denied')
      expect((await refusalOf(() => impostor.credentials())).code).toBe('authorization_denied')
      expect((await refusalOf(() => impostor.revokeAtBroker(GRANT_ID, credential(1)))).code).toBe(
        'authorization_denied',
      )
    }
    const versions = (await administrator().credentials()).map(stored => stored.credential.version)
    expect(versions).not.toContain(9)
  })

  test('never replaces a version that stands', async () => {
    const again = administrator().provision({ credential: credential(1), placement, secret: secret() })
    expect((await refusalOf(() => again)).code).toBe('conflict')
  })

  test('revokes at the broker with the kernel away, and repeating is safe', async () => {
    const first = await administrator().revokeAtBroker(GRANT_ID, credential(1))
    const second = await administrator().revokeAtBroker(GRANT_ID, credential(1))
    expect(second).toBeGreaterThanOrEqual(first)
    expect((await refusalOf(() => administrator().revokeAtKernel(GRANT_ID))).code).toBe('kernel_unavailable')
    const attempt = world.attempt()
    await attempt.register()
    expect((await refusalOf(() => attempt.prepare())).code).toBe('authorization_denied')
  })
})
