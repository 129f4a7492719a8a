// Owns the stories of a stream that waits for its frame and gets anything else. The peer sees it close, no byte more.
import { setTimeout as delay } from 'node:timers/promises'
import { attemptEnvelope } from '../../../client/broker-client.js'
import { closeDescriptor, shutdownWrite } from '../../../native/index.js'
import { encodeRequest } from '../../../protocol/envelope.js'
import { encodeFrame } from '../../../protocol/frame.js'
import type { BrokerWorld } from '../broker-world.js'
import { orphanedConnector } from '../orphaned-connector.js'
import { connectRaw, seenOn, write } from '../raw-broker.js'
import { type AttemptOptions, TENANT, type TestAttempt } from '../test-attempt.js'
import { failAt } from './request.js'
import { type Stories, type StoryEnd, story } from './story.js'

interface Held {
  readonly descriptor: number
  readonly frame: Uint8Array
  readonly attempt: TestAttempt
}

/** What a tool does with its stream before it looks what came of it. */
function holding(act: (held: Held, world: BrokerWorld) => Promise<unknown>, options: AttemptOptions = {}) {
  return async (world: BrokerWorld): Promise<StoryEnd> => {
    const attempt = await world.prepared(options)
    const { stream } = attempt.preparation
    const descriptor = stream.takeDescriptor()
    await act({ descriptor, frame: Uint8Array.from(stream.frame), attempt }, world)
    return { seen: await seenOn(descriptor), attempt }
  }
}

export const HELD_STORIES: Stories = {
  'deadline_expired at held': story(holding(() => delay(1_200), { capabilityLifetimeSeconds: 2 })),
  'released at held': story(holding(({ attempt }) => attempt.release())),
  'broker_stopping at held': story(holding((_held, world) => world.broker.close())),
  'internal_fault at held': story(
    async world => {
      const attempt = world.attempt()
      await attempt.register()
      const { stream } = await attempt.prepare()
      return { seen: await seenOn(stream.takeDescriptor()), attempt }
    },
    { atCutpoint: failAt('broker.acknowledged') },
  ),
  'connector_gone at held': story(async world => {
    const attempt = world.attempt()
    await attempt.register()
    const envelope = attemptEnvelope('prepare_connection', attempt.authorized('prepare'), TENANT)
    const never = encodeFrame(Buffer.from('never written'))
    const connector = orphanedConnector(world.socketPath, encodeFrame(encodeRequest(envelope)), never)
    while (world.broker.slotStatus().state !== 'waiting') await delay(5)
    await connector.leave()
    return { seen: await connector.seen(), attempt }
  }),
  'stream_closed at held': story(holding(async ({ descriptor }) => shutdownWrite(descriptor))),
  'stream_reset at held': story(async world => {
    const attempt = world.attempt()
    await attempt.register()
    const descriptor = await connectRaw(world)
    const envelope = attemptEnvelope('prepare_connection', attempt.authorized('prepare'), TENANT)
    await write(descriptor, encodeFrame(encodeRequest(envelope)))
    while (world.broker.slotStatus().state !== 'waiting') await delay(5)
    await delay(20)
    // Closed with the acknowledgement unread: the kernel resets the stream.
    closeDescriptor(descriptor)
    return { attempt }
  }),
  'frame_truncated at held': story(
    holding(async ({ descriptor, frame }) => {
      await write(descriptor, frame.subarray(0, 100))
      shutdownWrite(descriptor)
    }),
  ),
  'frame_read_timeout at held': story(
    holding(async ({ descriptor, frame }) => {
      for (let at = 0; at < 20; at += 1) {
        await write(descriptor, frame.subarray(at, at + 1))
        await delay(20)
      }
    }),
    { config: { readTimeoutMs: 200 } },
  ),
  'frame_length_mismatch at held': story(
    holding(({ descriptor, frame }) => {
      frame[3] = (frame[3] ?? 0) ^ 1
      return write(descriptor, frame.subarray(0, 4))
    }),
  ),
  'frame_mismatch at held': story(
    holding(({ descriptor, frame }) => {
      frame[200] = (frame[200] ?? 0) ^ 1
      return write(descriptor, frame)
    }),
  ),
  'surplus_bytes at held': story(
    holding(({ descriptor, frame }) => write(descriptor, Buffer.concat([frame, Buffer.from('x')]))),
  ),
}
