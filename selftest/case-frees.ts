// Case 3: the deadline, the end of the stream and trickled bytes each free the slot; bytes buy no time.
import { setTimeout as sleep } from 'node:timers/promises'
import { closeDescriptor, writeFully } from '../native/index.js'
import { systemClock } from '../native/clock.js'
import type { BrokerBench } from './broker-bench.js'
import { CaseFailure, expectAtMost, expectEqual } from './case-result.js'

/** The shortest lifetime in whole seconds that leaves time to prepare. */
const SHORT = { capabilitySeconds: 2, nonceSeconds: 120 }
const LIFETIME_BOUND_MS = 2_000
const FREE_BOUND_MS = 500
const TRICKLE_PAUSE_MS = 20

export async function freesTheSlot(bench: BrokerBench): Promise<string> {
  const before = await bench.touches()
  const endMs = await endOfStream(bench)
  await expiry(bench)
  const bytes = await trickle(bench)
  await bench.expectUntouched(before)
  return `free ${endMs.toFixed(1)} ms after the end of the stream, at the deadline, and at the same deadline while ${bytes} bytes trickled`
}

async function endOfStream(bench: BrokerBench): Promise<number> {
  const attempt = await bench.registered()
  const stream = await bench.prepare(attempt)
  expectEqual('slot while prepared', 'waiting', await bench.slotState())
  stream.close()
  const tookMs = await bench.untilFree(FREE_BOUND_MS)
  expectEqual('attempt after the end of its stream', 'failed', (await bench.ending(attempt)).state)
  return tookMs
}

async function expiry(bench: BrokerBench): Promise<void> {
  const attempt = await bench.registered(SHORT)
  const stream = await bench.prepare(attempt)
  try {
    await bench.untilFree(LIFETIME_BOUND_MS + FREE_BOUND_MS)
    expectEqual('attempt after its deadline', 'failed', (await bench.ending(attempt)).state)
  } finally {
    stream.close()
  }
}

/** Writes a byte at a time until the broker closes. @returns how many were taken. */
async function trickle(bench: BrokerBench): Promise<number> {
  const attempt = await bench.registered(SHORT)
  const stream = await bench.prepare(attempt)
  const { frame } = stream
  const descriptor = stream.takeDescriptor()
  const startedBootNs = systemClock.bootNs()
  const deadlineBootNs = startedBootNs + 10_000_000_000n
  let written = 0
  try {
    while (
      written < frame.length &&
      (await takes(descriptor, frame.subarray(written, written + 1), deadlineBootNs))
    ) {
      written += 1
      await sleep(TRICKLE_PAUSE_MS)
    }
  } finally {
    closeDescriptor(descriptor)
  }
  const tookMs = Number(systemClock.bootNs() - startedBootNs) / 1e6
  expectAtMost('lifetime of a trickled stream in ms', LIFETIME_BOUND_MS + FREE_BOUND_MS, tookMs)
  await bench.untilFree(FREE_BOUND_MS)
  if (written >= frame.length) throw new CaseFailure('trickle: expected the deadline before the last byte')
  return written
}

async function takes(descriptor: number, byte: Uint8Array, deadlineBootNs: bigint): Promise<boolean> {
  try {
    await writeFully(descriptor, byte, deadlineBootNs)
    return true
  } catch (error) {
    if (['ECONNRESET', 'EPIPE'].includes((error as NodeJS.ErrnoException).code ?? '')) return false
    throw error
  }
}
