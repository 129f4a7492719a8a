// Owns the stories of what ends before a request is known: whoever connects, whatever the bytes are.
import { brokerStorePath } from '../../../daemon/broker-store.js'
import { encode } from '../../../protocol/codec.js'
import { MAXIMUM_CONNECTIONS_PER_CONNECTOR } from '../../../protocol/limits.js'
import { SlotStatusRequest } from '../../../protocol/status.js'
import { closeDescriptor } from '../../../native/index.js'
import type { BrokerWorld } from '../broker-world.js'
import { ask, connectRaw, sayBytes, type Seen, seenOn } from '../raw-broker.js'
import { TENANT } from '../test-attempt.js'
import { holdStore } from '../test-store.js'
import { type Stories, story } from './story.js'

const payload = encode(SlotStatusRequest, { schema: 'chio.broker-slot-status-request.v1' })
const plain = { authorization: new Uint8Array(0), operation: 'slot_status', payload, tenantScope: TENANT }
const frame = (body: string): Uint8Array => {
  const bytes = Buffer.from(`    ${body}`, 'latin1')
  bytes.writeUInt32BE(body.length)
  return bytes
}

const connectMany = (world: BrokerWorld, count: number): Promise<number[]> =>
  Promise.all(Array.from({ length: count }, () => connectRaw(world)))

export const CONNECTION_STORIES: Stories = {
  'peer_denied at connection': story(async world => ({ seen: await ask(world, plain) }), {
    config: { clients: [{ uid: 12_345, gids: [12_345], callerPublicKey: null }] },
    provisioned: false,
  }),
  'connection_capacity at connection': story(async world => {
    const holder = await holdStore(brokerStorePath(world.stateDirectory))
    const waiting: Promise<unknown>[] = []
    // Each waits for the disk with its request complete: none of them makes room.
    let seen: Seen
    do {
      waiting.push(world.disable().catch(() => undefined))
      seen = await ask(world, plain)
      // Closed may also be who was still unheard when the next one came.
    } while (seen !== 'closed' || world.linesOf('connection_capacity').length === 0)
    await holder.letGo()
    await Promise.all(waiting)
    return { seen }
  }),
  'connection_dropped at connection': story(async world => {
    const silent = await connectRaw(world)
    const others = await connectMany(world, MAXIMUM_CONNECTIONS_PER_CONNECTOR)
    const seen = await seenOn(silent)
    for (const descriptor of others) closeDescriptor(descriptor)
    return { seen }
  }),
  'frame_refused at connection': story(async world => ({ seen: await sayBytes(world, Buffer.alloc(4)) })),
  'envelope_malformed at connection': story(async world => ({
    seen: await sayBytes(world, frame('{"authorization":[ ],"operation":"x"}')),
  })),
  'tenant_mismatch at connection': story(async world => ({
    seen: await ask(world, { ...plain, tenantScope: 'tenant-b' }),
  })),
  'authorization_missing at connection': story(async world => ({
    seen: await ask(world, { ...plain, operation: 'register_attempt' }),
  })),
  'operation_unknown at connection': story(async world => ({
    seen: await ask(world, { ...plain, operation: 'toString' }),
  })),
}
