// What the broker says of its slot and of one attempt. Both are authorized by the peer check alone
// and hold identifiers, times, digests and lengths, never content.
import {
  array,
  boolean,
  digest,
  type Infer,
  identifier,
  integer,
  literal,
  nullable,
  object,
  oneOf,
  text,
} from './codec.js'
import { ATTEMPT_STATES } from './attempt-states.js'
import { MAXIMUM_DECLINING_COUNT, MAXIMUM_HOST_BYTES } from './limits.js'
import { Count, UnixMs } from './unix-time.js'

export const SLOT_STATES = ['checking', 'executing', 'free', 'waiting'] as const
export type SlotState = (typeof SLOT_STATES)[number]
/** Which limit made the deadline: thirty seconds, the capability's expiry, the proof nonce's expiry. */
export const DEADLINE_LIMITS = ['capability_expiry', 'lifetime', 'nonce_expiry'] as const
export type DeadlineLimit = (typeof DEADLINE_LIMITS)[number]

const uid = integer({ min: 0, max: 0xffff_ffff })

export const SlotStatusRequest = object({ schema: literal('chio.broker-slot-status-request.v1') })

export const SlotRelease = object({
  attemptId: nullable(identifier()),
  reason: text({ minBytes: 1, maxBytes: 64 }),
  releasedAtUnixMs: UnixMs,
})

/** A grant whose preparations held the slot in vain; 0 left: its next preparation is taken. */
export const DecliningGrant = object({
  abandoned: Count,
  parentCapabilityId: identifier(),
  retryAfterMs: Count,
})
export type DecliningGrant = Infer<typeof DecliningGrant>

/** A destination that hangs, without its path; 0 left: the next preparation is the probe. */
export const DecliningProvider = object(
  {
    hangs: Count,
    host: text({ minBytes: 1, maxBytes: MAXIMUM_HOST_BYTES }),
    method: text({ minBytes: 1, maxBytes: 16 }),
    port: integer({ min: 1, max: 65_535 }),
    retryAfterMs: Count,
  },
  // The one grant that it is paused for; without it everybody.
  { optional: { parentCapabilityId: identifier() } },
)
export type DecliningProvider = Infer<typeof DecliningProvider>

export const SlotStatus = object({
  ageMs: nullable(Count),
  attemptId: nullable(identifier()),
  connector: nullable(object({ pid: Count, uid })),
  deadlineLimit: nullable(oneOf(...DEADLINE_LIMITS)),
  declining: object({
    grants: array(DecliningGrant, { max: MAXIMUM_DECLINING_COUNT }),
    providers: array(DecliningProvider, { max: MAXIMUM_DECLINING_COUNT }),
  }),
  decryptions: Count,
  lastRelease: nullable(SlotRelease),
  leftMs: nullable(Count),
  operationId: nullable(identifier()),
  schema: literal('chio.broker-slot-status.v2'),
  state: oneOf(...SLOT_STATES),
})
export type SlotStatus = Infer<typeof SlotStatus>

export const AttemptStatusRequest = object({
  attemptId: identifier(),
  schema: literal('chio.broker-attempt-status-request.v1'),
})
export type AttemptStatusRequest = Infer<typeof AttemptStatusRequest>

/** `reason` is a code of the refusal table; the three frame members are set for a refused frame only. */
export const AttemptStatus = object({
  attemptId: identifier(),
  endedAtUnixMs: nullable(UnixMs),
  dispatchCommittedAtUnixMs: nullable(UnixMs),
  expectedFrameSha256: nullable(digest()),
  held: boolean(),
  operationId: identifier(),
  parentCapabilityId: identifier(),
  reason: nullable(text({ minBytes: 1, maxBytes: 64 })),
  receiptReference: nullable(identifier()),
  registeredAtUnixMs: UnixMs,
  requestCanonicalDigest: digest(),
  schema: literal('chio.broker-attempt-status.v1'),
  state: oneOf(...ATTEMPT_STATES),
  submittedFrameBytes: nullable(Count),
  submittedFrameSha256: nullable(digest()),
})
export type AttemptStatus = Infer<typeof AttemptStatus>
