// Owns every reason for which this broker refuses or ends something: which check, when, what the peer sees, what
// the operator sees, what becomes of the attempt. docs/refusals.md is this table, and a test walks it row by row.
// Must never: tell a peer more than the code of a row. Reasons are stable and never reused.
// Source: the broker protocol, sections 2.4, 5.17 and 9.
import { BEFORE_CLAIM } from './refusals-before-claim.js'
import { fails, type RefusalMoment, type RefusalRow, silent, unknown } from './refusal-row.js'

const CHECKED: readonly RefusalMoment[] = ['preparation', 'consumption']
const UNTIL_DISPATCH: readonly RefusalMoment[] = ['preparation', 'held', 'consumption']

export const REFUSALS = {
  ...BEFORE_CLAIM,

  // From the claim of the slot to the dispatch commit.
  parent_not_live: fails(
    'live parent',
    'a parent capability that lives now',
    CHECKED,
    'authorization_denied',
  ),
  revoked_by_authority: fails(
    'revocation',
    'no revocation at the authority',
    CHECKED,
    'authorization_denied',
  ),
  revoked_by_broker: fails(
    'revocation',
    "no entry in the broker's own list",
    CHECKED,
    'authorization_denied',
  ),
  authority_unreachable: fails('authority', 'fresh signed answers in time', CHECKED, 'authority_unavailable'),
  request_refused: fails(
    'execute request',
    'a request that this broker may execute now',
    CHECKED,
    'authorization_denied',
  ),
  credential_unavailable: fails(
    'credential version',
    'one that is stored and enabled',
    CHECKED,
    'authorization_denied',
  ),
  placement_mismatch: fails(
    'credential placement',
    "the capability's provider-owned headers",
    ['preparation'],
    'authorization_denied',
  ),
  destination_refused: fails(
    'destination',
    'a public https host or a configured local provider',
    CHECKED,
    'authorization_denied',
  ),
  lifetime_over: fails(
    'lifetime',
    'time left before the earliest expiry',
    ['preparation'],
    'authorization_denied',
  ),
  preparation_budget: fails(
    'preparation',
    'an acknowledgement within 2 s of the claim',
    ['preparation'],
    'authority_unavailable',
  ),
  connector_gone: fails('connector', 'the connecting process alive', UNTIL_DISPATCH, 'authorization_denied'),
  released: fails('attempt', 'no release by the authority', UNTIL_DISPATCH, 'authorization_denied'),
  broker_stopping: fails('broker', 'a broker that is not stopping', UNTIL_DISPATCH, 'authority_unavailable'),
  internal_fault: {
    ...fails('broker', 'no fault of its own', ['request', ...UNTIL_DISPATCH], 'invariant'),
    silent: true,
  },
  deadline_expired: fails(
    'deadline',
    'the frame and its checks in time',
    ['held', 'consumption'],
    'authorization_denied',
  ),
  stream_closed: {
    ...fails('stream', 'the frame before the end of the stream', ['preparation', 'held'], 'invalid_request'),
    silent: true,
  },
  // The frame came, and nobody is there for the answer: it is not asked for.
  stream_left: {
    ...fails(
      'stream',
      'descriptor 8 kept open until the response was read',
      ['consumption'],
      'invalid_request',
    ),
    silent: true,
  },
  stream_reset: {
    ...fails('stream', 'a stream that lasts', ['held'], 'invalid_request'),
    silent: true,
  },
  frame_truncated: { ...fails('frame', 'the whole frame', ['held'], 'invalid_request'), silent: true },
  frame_read_timeout: fails(
    'frame',
    'the whole frame within the read budget',
    ['held'],
    'authorization_denied',
  ),
  frame_length_mismatch: fails('frame', 'exactly the bound length', ['held'], 'authorization_denied'),
  frame_mismatch: fails('frame', 'exactly the bound frame', ['held'], 'authorization_denied'),
  surplus_bytes: {
    ...fails('stream', 'no byte beside the one frame', UNTIL_DISPATCH, 'invalid_request'),
    silent: true,
  },
  hold_not_captured: fails(
    'original capture',
    'this hold captured by the authority',
    ['consumption'],
    'authorization_denied',
  ),
  revocation_set_changed: fails(
    'revocation set',
    'the set that the hold was captured against',
    ['consumption'],
    'authorization_denied',
  ),
  // What is recorded of it already is what its stream gets, where anything is.
  duplicate_state: silent(
    'duplicate state',
    'an attempt that is registered and was never dispatched',
    ['consumption'],
    'conflict',
  ),
  quota_spent: fails(
    'execution count',
    'executions left under every quota',
    ['consumption'],
    'authorization_denied',
  ),
  provider_unresolved: fails(
    'provider name',
    'public addresses for it from the name servers of this machine',
    ['consumption'],
    'upstream',
  ),
  provider_unreachable: fails(
    'provider',
    'a connection to its port that lasts until the commit',
    ['consumption'],
    'upstream',
  ),
  provider_unverified: fails(
    'provider certificate',
    'a TLS handshake, and a certificate for its name by an authority that this broker trusts',
    ['consumption'],
    'upstream',
  ),
  commit_failed: fails('dispatch commit', 'the commit on disk', ['consumption'], 'storage'),
  broker_restarted: fails('attempt', 'one life of the broker', ['start'], 'authorization_denied'),

  // After the dispatch commit.
  custody_fault: fails('credential', 'a secret that decrypts', ['dispatched'], 'custody'),
  request_not_sent: fails('provider', 'a connection at the moment of writing', ['dispatched'], 'upstream'),
  credential_reflected: fails(
    'provider answer',
    'an answer that holds no form of the credential',
    ['dispatched'],
    'response_rejected',
  ),
  response_too_large: fails(
    'provider answer',
    'an answer within the response limit',
    ['dispatched'],
    'response_rejected',
  ),
  response_rejected: fails(
    'provider answer',
    'an answer that may be handed on',
    ['dispatched'],
    'response_rejected',
  ),
  provider_lost: unknown('provider', 'a complete answer', ['dispatched'], 'upstream'),
  provider_timeout: unknown('provider', 'a complete answer in time', ['dispatched'], 'upstream'),
  stop_hurried: unknown('broker', 'time to wait for the answer', ['dispatched'], 'upstream'),
  dispatch_fault: unknown('broker', 'no fault of its own', ['dispatched'], 'invariant'),
  outcome_lost: unknown('dispatch', 'an outcome recorded before the broker ended', ['start'], 'storage'),
} as const satisfies Record<string, RefusalRow>

export type RefusalReason = keyof typeof REFUSALS

export function refusalRow(reason: RefusalReason): RefusalRow {
  return REFUSALS[reason]
}
