import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { AuthorityClient } from '../../daemon/authority-client.js'
import { systemClock } from '../../native/clock.js'
import type { AuthorityQuestion } from '../../protocol/authority-rpc.js'
import { CAPABLE, inOrder, rejected } from '../support/authority.js'
import { BrokerWorld } from '../support/broker-world.js'
import { soonBootNs } from '../support/raw-broker.js'

let world: BrokerWorld
let client: AuthorityClient
beforeEach(async () => {
  world = new BrokerWorld({ provider: false })
  await world.found()
  client = new AuthorityClient({ config: world.config, clock: systemClock, key: world.receiptKey })
})
afterEach(async () => {
  client.close()
  await world.close()
})

const live = (capabilityId: string): AuthorityQuestion => ({
  kind: 'verify_live_parent',
  request: { audience: 'a', capabilityId, subject: '1'.repeat(64) },
})
const revoked: AuthorityQuestion = {
  kind: 'check_broker_revocation',
  request: { revocationIds: ['grant'] },
}
async function parent(id = 'grant') {
  const [answer] = await client.ask([live(id)], soonBootNs())
  if (answer.kind !== 'live_parent') throw new Error(`expected a live parent, got ${answer.kind}`)
  return answer.response
}

describe('questions to the authority', () => {
  test('begin with its capabilities, once a connection, and again after a lost one', async () => {
    await client.ask([live('grant'), revoked], soonBootNs())
    expect(world.authority.asked).toEqual(['capabilities', 'verify_live_parent', 'check_broker_revocation'])
    world.authority.dropConnections()
    await delay(30)
    await parent()
    expect(world.authority.asked.filter(kind => kind === 'capabilities')).toHaveLength(2)
    expect(world.authority.connections).toBe(2)
  })

  test('are matched with their answers in whatever order these come', async () => {
    world.authority.behave('verify_live_parent', async operation => {
      if (operation.kind === 'verify_live_parent' && operation.request.capabilityId === 'slow')
        await delay(100)
      return inOrder(world.keys.authority)(operation)
    })
    const order: string[] = []
    const ask = async (id: string): Promise<void> => {
      expect((await parent(id)).capabilityId).toBe(id)
      order.push(id)
    }
    await Promise.all([ask('slow'), ask('fast'), ask('faster')])
    expect(order.at(-1)).toBe('slow')
    expect(world.authority.connections).toBe(1)
  })

  test.each([
    'atomicMultiKeyHolds',
    'combinedCaptureAndRevocation',
    'queryById',
    'sharedRevocationWriteDomain',
  ])('are not asked of an authority without %s', async ability => {
    world.authority.behave('capabilities', () => ({
      kind: 'capabilities',
      response: { ...CAPABLE, [ability]: false },
    }))
    await expect(parent()).rejects.toMatchObject({ reason: 'authority_unreachable' })
    expect(world.authority.asked).toEqual(['capabilities'])
  })

  test('are asked in one frame and answered in their order, each for itself', async () => {
    world.authority.behave('verify_live_parent', () => rejected)
    const answers = await client.ask([revoked, live('grant')], soonBootNs())
    expect(answers.map(({ kind }) => kind)).toEqual(['revocation', 'rejected'])
  })

  test('fail where an answer is missing, or more or fewer come than were asked', async () => {
    world.authority.behave('verify_live_parent', () => undefined)
    const unreachable = { reason: 'authority_unreachable' }
    await expect(client.ask([revoked, live('grant')], soonBootNs())).rejects.toMatchObject(unreachable)
    world.authority.behave('verify_live_parent')
    for (const count of [1, 3]) {
      world.authority.answerCount = count
      await expect(client.ask([revoked, live('grant')], soonBootNs())).rejects.toMatchObject(unreachable)
    }
  })

  test('fail while the authority is away and succeed once it is there, without a restart of anything', async () => {
    await world.authority.close()
    await expect(parent()).rejects.toMatchObject({ code: 'authority_unavailable' })
    await world.authority.start()
    expect((await parent()).capabilityId).toBe('grant')
  })
})
