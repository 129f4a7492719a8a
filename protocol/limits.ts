// Owns every limit of the protocol: name, unit, reason. Each is tested at the limit and one over.
// Must never be widened by a document: a grant or a configuration may only narrow them.
// Source: the broker protocol's constants; where ours differ, the line says why.

// Frames.
/** Length prefix, unsigned big endian. */
export const FRAME_PREFIX_BYTES = 4
/** A 512 KiB body is written twice as decimals (~13 bytes a byte): 8 MiB is what lets it really fit. */
export const MAXIMUM_REQUEST_FRAME_BYTES = 8 * 1024 * 1024
/** A 2 MiB response is likewise written twice as decimals: 32 MiB lets it fit. */
export const MAXIMUM_RESPONSE_FRAME_BYTES = 32 * 1024 * 1024
/** Buffered for all peers together before their request is authenticated: bounds memory under attack. */
export const MAXIMUM_PREAUTHENTICATION_BYTES = 16 * 1024 * 1024
/** Frames above this are taken one at a time, so that parallel large ones cannot exhaust memory. */
export const LARGE_FRAME_BYTES = 1024 * 1024
/** Work between two turns of the event loop while a large frame is read or written. */
export const MAXIMUM_SLICE_MS = 2

// Documents.
/** Nesting of any JSON text: deeper is refused before the stack is at risk. */
export const MAXIMUM_JSON_DEPTH = 64
/** Largest integer that every JSON implementation keeps exactly (RFC 7493). */
export const MAXIMUM_INTEGER = Number.MAX_SAFE_INTEGER
export const MAXIMUM_IDENTIFIER_BYTES = 512
export const MAXIMUM_OPERATION_NAME_BYTES = 32
/** Authorization part of an envelope: a proof or an administrator's envelope. */
export const MAXIMUM_AUTHORIZATION_BYTES = 65_536
/** Payload part of an envelope: the execute request before it becomes decimals. */
export const MAXIMUM_PAYLOAD_BYTES = MAXIMUM_REQUEST_FRAME_BYTES
/** Response part of an envelope: the execute response before it becomes decimals. */
export const MAXIMUM_ENVELOPE_RESPONSE_BYTES = MAXIMUM_RESPONSE_FRAME_BYTES
/** Text of a wire error code. */
export const MAXIMUM_ERROR_CODE_BYTES = 64
/** Text of the diagnostic code in a failure receipt. */
export const MAXIMUM_DIAGNOSTIC_CODE_BYTES = 128
export const MAXIMUM_CONFIGURATION_BYTES = 65_536

// The brokered request.
export const MAXIMUM_BODY_BYTES = 524_288
export const MAXIMUM_RESPONSE_BYTES = 2_097_152
export const MAXIMUM_HEADER_COUNT = 64
export const MAXIMUM_HEADER_NAME_BYTES = 128
export const MAXIMUM_HEADER_VALUE_BYTES = 8_192
export const MAXIMUM_PATH_AND_QUERY_BYTES = 16_384
/** Whole host name (RFC 1035 section 2.3.4). */
export const MAXIMUM_HOST_BYTES = 253
export const MAXIMUM_HOST_LABEL_BYTES = 63
export const MAXIMUM_TIMEOUT_MS = 120_000
export const MINIMUM_NONCE_BYTES = 16
export const MAXIMUM_NONCE_BYTES = 128
export const MAXIMUM_NONCE_TTL_SECONDS = 300
export const MAXIMUM_QUOTAS = 8
/** Parent, its ancestors, the broker capability and its revocation id. */
export const MAXIMUM_REVOCATION_SET_MEMBERS = 128
export const MAXIMUM_SOURCE_RECEIPT_IDS = 64

// The provider's answer.
export const MAXIMUM_RESPONSE_HEAD_BYTES = 16_384
export const MAXIMUM_STATUS_LINE_BYTES = 1_024
export const MAXIMUM_RESPONSE_HEADER_LINE_BYTES = 8_384
export const MAXIMUM_CHUNK_LINE_BYTES = 64
export const MAXIMUM_CHUNK_SIZE_DIGITS = 16
export const MAXIMUM_RESOLVED_ADDRESSES = 16

// Custody and administration.
export const MAXIMUM_SECRET_BYTES = 65_536
export const MAXIMUM_APPROVALS = 32
export const MAXIMUM_ADMINISTRATOR_TOKEN_LIFETIME_SECONDS = 3_600
export const KEY_BYTES = 32
/** Imported public keys kept: pins, clients and the callers of one day; admission costs a millisecond. */
export const MAXIMUM_CACHED_KEYS = 1_024
export const SIGNATURE_BYTES = 64

// Time.
/** A prepared stream never lives longer, whatever its documents say. */
export const MAXIMUM_PREPARED_LIFETIME_MS = 30_000
/** From the claim of the slot to the acknowledgement. */
export const PREPARATION_BUDGET_MS = 2_000
export const MAXIMUM_IPC_DEADLINE_MS = 30_000
export const DEFAULT_IPC_DEADLINE_MS = 5_000
export const MAXIMUM_AUTHORITY_TIMEOUT_MS = 30_000
export const MAXIMUM_CLOCK_SKEW_SECONDS = 30
export const MAXIMUM_SNAPSHOT_AGE_SECONDS = 60

// Sockets.
/** sun_path holds 108 with its NUL; the protocol allows 100. */
export const MAXIMUM_SOCKET_PATH_BYTES = 100
