// Owns the bounds of what a client of the sidecar can take: bytes, time and places; each named with unit and reason.
// Must never be widened by a request.
// Source: the facts of the caller routes for body and header scan; the rest is what a local client needs, many times over.
import { MAXIMUM_CALLER_HTTP_BYTES } from '../protocol/limits.js'

/** Body of one request: 1 MiB and 32 KiB. */
export const MAXIMUM_BODY_BYTES = MAXIMUM_CALLER_HTTP_BYTES
/** Names and values of all fields together that are searched for the control token; more is refused unread. */
export const HEADER_SCAN_BUDGET_BYTES = 65_536
/** What the parser takes at all: the budget with colons, spaces and line ends, and the request line. */
export const MAXIMUM_HEAD_BYTES = 2 * HEADER_SCAN_BUDGET_BYTES
/** How long a client may take, in milliseconds. */
export interface HttpTimes {
  /** From the opening of a connection, or its first byte of a next request, to the end of the head. */
  readonly headMs: number
  /** The same to the end of the body. */
  readonly requestMs: number
  /** How often the two are compared. */
  readonly checkMs: number
  /** An idle connection is kept for the next step of the same client, no longer. */
  readonly keepAliveMs: number
  /** No byte in either direction. */
  readonly silenceMs: number
}
/** A local client sends a megabyte in milliseconds; silence is above the longest answer of a busy kernel. */
export const HTTP_TIMES: HttpTimes = {
  headMs: 5_000,
  requestMs: 10_000,
  checkMs: 500,
  keepAliveMs: 5_000,
  silenceMs: 60_000,
}
export const MAXIMUM_REQUESTS_PER_CONNECTION = 1_000
/** Two descriptors each; beyond it the oldest connection that nothing complete came from makes room. */
export const MAXIMUM_HTTP_CONNECTIONS = 64
/** Of one connecting process over the Unix socket: half, so that another one always gets in. */
export const MAXIMUM_HTTP_CONNECTIONS_PER_CONNECTOR = 32
export const BACKLOG = 64
/** A refused body that is under way is thrown away for so long, so that its sender can read the answer. */
export const DISCARD_MS = 1_000
/** And no more of it than a body that fits, twice. */
export const DISCARD_BYTES = 2 * MAXIMUM_BODY_BYTES
/** From the first request to close to the end of the last answer. */
export const CLOSE_WITHIN_MS = 5_000
