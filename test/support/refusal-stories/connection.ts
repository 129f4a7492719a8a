// Owns the stories of what ends before a request is known: whoever connects, whatever the bytes are.
import { setTimeout as delay } from 'node:timers/promises'
import { encode } from '../../../protocol/codec.js'
import { SlotStatusRequest } from '../../../protocol/status.js'
import { closeDescriptor } from '../../../native/index.js'
import { ask, connectRaw, sayBytes } from '../raw-broker.js'
import { TENANT } from '../test-attempt.js'
import { type Stories, story } from './story.js'

const payload = encode(SlotStatusRequest, { schema: 'chio.broker-slot-status-request.v1' })
const plain = { authorization: new Uint8Array(0), operation: 'slot_status', payload, tenantScope: TENANT }
const frame = (body: string): Uint8Array => {
  const bytes = Buffer.from(`    ${body}`, 'latin1')
  bytes.writeUInt32BE(body.length)
  return bytes
}

export const CONNECTION_STORIES: Stories = {
  'peer_denied at connection': story(async world => ({ seen: await ask(world, plain) }), {
    config: { clients: [{ uid: 12_345, gids: [12_345], callerPublicKey: null }] },
    provisioned: false,
  }),
  'connection_capacity at connection': story(async world => {
    const held = await Promise.all(Array.from({ length: 64 }, () => connectRaw(world)))
    await delay(50)
    const seen = await ask(world, plain)
    for (const descriptor of held) closeDescriptor(descriptor)
    await delay(50)
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
