// Owns one whole brokered execution against a hostile provider: what the tool got, what the signed record says, what
// the attempt's status says, and whether they agree.
import { expect } from 'vitest'
import { verifyOutcome } from '../../client/outcome.js'
import { IpcResponse } from '../../protocol/envelope.js'
import { decode } from '../../protocol/codec.js'
import type { AttemptStatus } from '../../protocol/status.js'
import { type BrokerWorld, SECRET } from './broker-world.js'
import { soonBootNs } from './raw-broker.js'
import type { TestAttempt } from './test-attempt.js'
import type { Preparation } from '../../client/prepare.js'

/** What each ending must be in the signed failure receipt, and in the record of the attempt. */
const RECORDED: Readonly<
  Record<string, readonly [stage: string, outcome: string, knowledge: string, state: string]>
> = {
  credential_reflected: ['response', 'failed', 'committed', 'failed'],
  response_rejected: ['response', 'failed', 'committed', 'failed'],
  response_too_large: ['response', 'failed', 'committed', 'failed'],
  provider_lost: ['dispatch', 'unknown', 'unknown', 'unknown_outcome'],
  provider_timeout: ['dispatch', 'unknown', 'unknown', 'unknown_outcome'],
  provider_unreachable: ['capture', 'failed', 'not_committed', 'failed'],
  provider_unverified: ['capture', 'failed', 'not_committed', 'failed'],
}

export type Prepared = TestAttempt & { readonly preparation: Preparation }

/** Submits, verifies, replays. @returns the ending in a word, and the record. */
export async function endingOf(
  world: BrokerWorld,
  attempt: Prepared,
): Promise<{ ending: string; status: AttemptStatus }> {
  const { response, frame } = await attempt.preparation.stream.submit(soonBootNs(20_000))
  const outcome = verifyOutcome(response, frame, attempt.context)
  const status = await attempt.status()
  const replayed = await attempt.replay()
  expect(Buffer.compare(replayed.frame, frame), 'a replay has the same bytes').toBe(0)
  expectNoSecret(world, frame)
  expect(world.broker.slotStatus().state).toBe('free')
  if (outcome.kind === 'response') {
    expect(status).toMatchObject({ state: 'completed', reason: null })
    return { ending: 'response', status }
  }
  if (outcome.kind !== 'failure') throw new Error(`no signed record: ${outcome.kind}`)
  const { stage, outcome: ended, dispatchKnowledge } = outcome.failure.receipt.body
  expect([stage, ended, dispatchKnowledge, status.state]).toEqual(RECORDED[status.reason ?? ''])
  return { ending: status.reason ?? '', status }
}

function expectNoSecret(world: BrokerWorld, frame: Uint8Array): void {
  const { response } = decode(IpcResponse, frame, 'response')
  const places = [Buffer.from(response).toString('latin1'), JSON.stringify(world.lines)]
  const forms = [SECRET, Buffer.from(SECRET).toString('base64'), Buffer.from(SECRET).toString('hex')]
  for (const form of forms) expect(places.some(place => place.includes(form))).toBe(false)
}
