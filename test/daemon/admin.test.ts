import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { decode, encode } from '../../protocol/codec.js'
import {
  CredentialList,
  CredentialListRequest,
  CredentialMutationV1,
  SignedAdminMutationReceipt,
  verifyMutationReceipt,
} from '../../protocol/credential-mutation.js'
import { type BrokerWorld, SECRET, startWorld } from '../support/broker-world.js'
import { SteppedClock } from '../support/clock.js'

let world: BrokerWorld
const clock = new SteppedClock()
beforeEach(async () => {
  world = await startWorld({ clock, provider: false })
})
afterEach(() => world.close())

async function list() {
  const payload = encode(CredentialListRequest, { schema: 'chio.broker-credential-list-request.v1' })
  const { request, authorization } = world.administered('credential_list', payload)
  const answer = await world.client.administer({ ...request, operation: 'credential_list' }, authorization)
  return decode(CredentialList, answer, 'list')
}

describe('disable', () => {
  test('is recorded, signed and shown; a second one changes nothing', async () => {
    for (let time = 0; time < 2; time += 1) {
      const receipt = decode(SignedAdminMutationReceipt, await world.disable(), 'receipt')
      expect(verifyMutationReceipt(receipt, world.receiptKey.publicKey).body).toMatchObject({
        operation: 'disable',
        outcome: 'applied',
        credential: { credentialId: 'issues', version: 1 },
      })
    }
    expect((await list()).credentials).toMatchObject([{ enabled: false }])
  })

  test('answers an exact retry with the same bytes', async () => {
    const { request, authorization } = world.disabling()
    const asked = { ...request, operation: 'disable' } as const
    const first = Buffer.from(await world.client.administer(asked, authorization))
    expect(first.equals(await world.client.administer(asked, authorization))).toBe(true)
  })

  test('refuses a provision under its name, and a version that nobody stored', async () => {
    const { request } = world.provisioning('another-secret', 2)
    const wrong = world.administered('disable', request.payload)
    await expect(
      world.client.administer({ ...wrong.request, operation: 'disable' }, wrong.authorization),
    ).rejects.toMatchObject({ code: 'invalid_request' })
    await expect(world.disable(2)).rejects.toMatchObject({ code: 'authorization_denied' })
    expect((await list()).credentials).toMatchObject([{ enabled: true }])
  })
})

describe('provision', () => {
  test('answers with a signed receipt, and the same bytes to an exact retry after its approval expired', async () => {
    const { request, authorization } = world.provisioning('another-secret', 2)
    const asked = { ...request, operation: 'provision' } as const
    const first = await world.client.administer(asked, authorization)
    const receipt = decode(SignedAdminMutationReceipt, first, 'receipt')
    expect(verifyMutationReceipt(receipt, world.receiptKey.publicKey).body.credential.version).toBe(2)
    clock.step(3_600_000)
    const again = await world.client.administer(asked, authorization)
    clock.step(-3_600_000)
    expect(Buffer.compare(Buffer.from(again), Buffer.from(first))).toBe(0)
    expect((await list()).credentials).toHaveLength(2)
  })

  test('refuses an expired approval that was never spent', async () => {
    const { request, authorization } = world.provisioning('another-secret', 2)
    clock.step(3_600_000)
    await expect(
      world.client.administer({ ...request, operation: 'provision' }, authorization),
    ).rejects.toMatchObject({ code: 'authorization_denied' })
    clock.step(-3_600_000)
  })

  test('takes the first version of the mutation as bearer', async () => {
    const payload = encode(CredentialMutationV1, {
      credential: { credentialId: 'issues', provider: 'tracker', version: 9 },
      mutation: 'provision',
      schema: 'chio.broker-credential-mutation.v1',
      secret: Buffer.from('first-version'),
    })
    const { request, authorization } = world.administered('provision', payload)
    await world.client.administer({ ...request, operation: 'provision' }, authorization)
    const stored = (await list()).credentials.find(({ credential }) => credential.version === 9)
    expect(stored?.placement).toEqual({ kind: 'bearer_authorization' })
  })

  test('refuses a secret with a line end or a space, and leaves no version behind', async () => {
    for (const secret of ['line\n', 'two words', '\u00e9']) {
      await expect(world.provision(secret, 3)).rejects.toMatchObject({ code: 'invalid_request' })
    }
    expect((await list()).credentials).toHaveLength(1)
  })

  test('leaves the approval unspent when the version exists: the log says why, the peer hears conflict', async () => {
    await expect(world.provision('another-secret', 1)).rejects.toMatchObject({ code: 'conflict' })
    const [line] = world.linesOf('credential_exists')
    expect(line?.['sentence']).toContain('version 1 a second time')
  })
})

describe('list', () => {
  test('shows reference, placement and state, and no value', async () => {
    const { credentials } = await list()
    expect(credentials).toMatchObject([
      {
        credential: { credentialId: 'issues', provider: 'tracker', version: 1 },
        enabled: true,
        placement: { kind: 'bearer_authorization' },
      },
    ])
    expect(JSON.stringify(credentials)).not.toContain(SECRET)
  })
})

describe('revoke', () => {
  test('is safe to repeat: the second entry is the first', async () => {
    const first = await world.revoke('grant-a')
    const second = await world.revoke('grant-a')
    expect(second.authorityCommitIndex).toBe(first.authorityCommitIndex)
    expect((await world.revoke('grant-b')).authorityCommitIndex).toBeGreaterThan(first.authorityCommitIndex)
  })
})

test('no log line of an administrator holds the secret', () => {
  expect(JSON.stringify(world.lines)).not.toContain(SECRET)
})
