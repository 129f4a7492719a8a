// chio status: what both daemons say of themselves, and which layout this is.
import { BrokerClient } from '../client/broker-client.js'
import { KernelClient } from '../client/kernel-client.js'
import { systemClock } from '../native/clock.js'
import { isBrokerError } from '../protocol/errors.js'
import type { SlotStatus } from '../protocol/status.js'
import { areSeparate, readIdentities, SINGLE_USER_SENTENCE } from '../system/identities.js'
import { beside } from './columns.js'
import { readPins } from './host-session.js'
import { type CommonOptions, print } from './output.js'
import { findState, layoutOfState } from './state.js'

/** Asks both daemons. Exit 69 when one does not answer. */
export async function showStatus(options: CommonOptions): Promise<void> {
  const layout = layoutOfState(findState(options.state))
  const pins = readPins(layout)
  const separate = areSeparate(readIdentities(layout.identities))
  const kernelClient = new KernelClient(pins.kernel, systemClock)
  const broker = await answerOf(() => new BrokerClient(pins.broker, systemClock).slotStatus())
  const kernel = await answerOf(() => kernelClient.call('status', {}))
  kernelClient.close()
  const layoutName = separate ? 'separate users' : 'single user'
  const document = { schema: 'chio.status.v1', state: layout.state, layout: layoutName, broker, kernel }
  print(options, document, [
    `state   ${layout.state} (${layoutName})`,
    `broker  ${'error' in broker ? broker.error : slotLine(broker)}`,
    ...('error' in broker ? [] : decliningLines(broker)),
    `kernel  ${'error' in kernel ? kernel.error : `serving, owner epoch ${kernel.ownerEpoch}, ${kernel.waiting} waiting to settle`}`,
    ...('error' in kernel || kernel.clockFault === null ? [] : beside('', kernel.clockFault, 8)),
    ...(separate ? [] : [SINGLE_USER_SENTENCE]),
  ])
  if ('error' in broker || 'error' in kernel) process.exitCode = 69
}

async function answerOf<T>(ask: () => Promise<T>): Promise<T | { error: string }> {
  try {
    return await ask()
  } catch (error) {
    if (!isBrokerError(error)) throw error
    return { error: error.message }
  }
}

/** What the broker declines before the slot, and for how much longer. */
function decliningLines({ declining }: SlotStatus): string[] {
  const grants = declining.grants.map(
    ({ abandoned, parentCapabilityId, retryAfterMs }) =>
      `        grant ${parentCapabilityId}: ${abandoned} preparations abandoned in a row; ${waitText(retryAfterMs)}`,
  )
  const providers = declining.providers.map(
    ({ hangs, host, method, parentCapabilityId: grant, port, retryAfterMs }) =>
      `        provider ${method} ${host}:${port}: hung ${hangs} times in a row${grant === undefined ? '' : ` for grant ${grant} alone`}; ${waitText(retryAfterMs)}`,
  )
  return [...grants, ...providers]
}

function waitText(retryAfterMs: number): string {
  return retryAfterMs === 0 ? 'the next preparation is taken' : `declined for ${retryAfterMs} ms more`
}

function slotLine(slot: SlotStatus): string {
  const last = slot.lastRelease === null ? 'none yet' : slot.lastRelease.reason
  if (slot.state === 'free') return `slot free; last release: ${last}; ${slot.decryptions} decryptions so far`
  const holder =
    slot.connector === null ? '' : ` by connector pid ${slot.connector.pid} uid ${slot.connector.uid}`
  const left = slot.leftMs === null ? '' : `, ${slot.leftMs} ms left (${slot.deadlineLimit})`
  return `slot ${slot.state}${holder}${left}; attempt ${slot.attemptId ?? 'not yet known'}`
}
