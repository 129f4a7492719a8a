import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { AuthorityClient } from '../../daemon/authority-client.js'
import { systemClock } from '../../native/clock.js'
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

const query = { audience: 'a', capabilityId: 'grant', subject: '1'.repeat(64) }
const parent = (id = 'grant') => client.liveParent({ ...query, capabilityId: id }, soonBootNs())

describe('questions to the authority', () => {
  test('begin with its capabilities, once a connection, and again after a lost one', async () => {
    await parent()
    await client.revocation(['grant'], soonBootNs())
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

  test('fail by name: a rejection, an answer of another kind, silence', async () => {
    world.authority.behave('verify_live_parent', () => rejected)
    await expect(parent()).rejects.toMatchObject({ reason: 'parent_not_live' })
    world.authority.behave('verify_live_parent', () => ({ kind: 'hold', response: 'held' }))
    await expect(parent()).rejects.toMatchObject({ reason: 'authority_unreachable' })
    world.authority.behave('verify_live_parent', () => undefined)
    await expect(parent()).rejects.toMatchObject({ reason: 'authority_unreachable' })
  })

  test('fail while the authority is away and succeed once it is there, without a restart of anything', async () => {
    await world.authority.close()
    await expect(parent()).rejects.toMatchObject({ code: 'authority_unavailable' })
    await world.authority.start()
    expect((await parent()).capabilityId).toBe('grant')
  })
})
