// Case 4: the lifetime is the earliest of thirty seconds, the capability's expiry and the proof nonce's
// expiry, and what has expired is declined at preparation.
import { setTimeout as sleep } from 'node:timers/promises'
import type { DeadlineLimit } from '../protocol/status.js'
import type { BrokerBench } from './broker-bench.js'
import { expectAtMost, expectEqual } from './case-result.js'
import type { MintedLifetime } from './minted-attempt.js'

interface ExpectedLimit {
  readonly limit: DeadlineLimit
  readonly lifetime: MintedLifetime
  readonly boundMs: number
}

const LIMITS: readonly ExpectedLimit[] = [
  { limit: 'lifetime', lifetime: { capabilitySeconds: 120, nonceSeconds: 120 }, boundMs: 30_000 },
  { limit: 'capability_expiry', lifetime: { capabilitySeconds: 8, nonceSeconds: 120 }, boundMs: 8_000 },
  { limit: 'nonce_expiry', lifetime: { capabilitySeconds: 120, nonceSeconds: 6 }, boundMs: 6_000 },
]
const FREE_BOUND_MS = 500
const EXPIRING = { capabilitySeconds: 1, nonceSeconds: 120 }
const PAST_EXPIRY_MS = 1_100

export async function followsExpiries(bench: BrokerBench): Promise<string> {
  const before = await bench.touches()
  for (const expected of LIMITS) await expectLimit(bench, expected)
  const expired = await bench.registered(EXPIRING)
  await sleep(PAST_EXPIRY_MS)
  expectEqual('preparation after expiry', 'authorization_denied', await bench.declinedCode(expired))
  expectEqual('slot after it', 'free', await bench.slotState())
  await bench.expectUntouched(before)
  return 'thirty seconds, capability expiry and nonce expiry each governed where it was earliest; an expired capability was declined'
}

async function expectLimit(bench: BrokerBench, { limit, lifetime, boundMs }: ExpectedLimit): Promise<void> {
  const stream = await bench.prepare(await bench.registered(lifetime))
  try {
    const slot = await bench.session.broker.slotStatus()
    expectEqual('governing limit', limit, slot.deadlineLimit)
    expectAtMost(`milliseconds left under ${limit}`, boundMs, slot.leftMs ?? Number.POSITIVE_INFINITY)
  } finally {
    stream.close()
  }
  await bench.untilFree(FREE_BOUND_MS)
}
