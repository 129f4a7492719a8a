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
/** Ids are compared, indexed and logged: long enough for any derived one, short enough to print. */
export const MAXIMUM_IDENTIFIER_BYTES = 512
/** The longest operation has 18; what is longer is no operation. */
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
/** A configuration is a page, never a payload. */
export const MAXIMUM_CONFIGURATION_BYTES = 65_536

// The brokered request.
/** Request body before encoding; the protocol's bound. */
export const MAXIMUM_BODY_BYTES = 524_288
/** Exact response head and decoded body together; a grant may narrow it. */
export const MAXIMUM_RESPONSE_BYTES = 2_097_152
/** Header fields of a request or a response; more is an attack or a mistake. */
export const MAXIMUM_HEADER_COUNT = 64
/** The protocol's bound of a lower-case field name. */
export const MAXIMUM_HEADER_NAME_BYTES = 128
/** The usual bound of servers for one field line. */
export const MAXIMUM_HEADER_VALUE_BYTES = 8_192
/** Request targets beyond this are refused by servers as well. */
export const MAXIMUM_PATH_AND_QUERY_BYTES = 16_384
/** Whole host name (RFC 1035 section 2.3.4). */
export const MAXIMUM_HOST_BYTES = 253
/** One label between dots (RFC 1035 section 2.3.4). */
export const MAXIMUM_HOST_LABEL_BYTES = 63
/** Longest wait for a provider that a caller may ask for. */
export const MAXIMUM_TIMEOUT_MS = 120_000
/** 96 bits of randomness in the nonce alphabet: never guessed, never met twice. */
export const MINIMUM_NONCE_BYTES = 16
/** A nonce is compared and stored, so it is bounded too. */
export const MAXIMUM_NONCE_BYTES = 128
/** A proof older than this must be signed anew. */
export const MAXIMUM_NONCE_TTL_SECONDS = 300
/** Keys captured in one commit; each is one row. */
export const MAXIMUM_QUOTAS = 8
/** Parent, its ancestors, the broker capability and its revocation id. */
export const MAXIMUM_REVOCATION_SET_MEMBERS = 128
/** References of a receipt; bounds its size. */
export const MAXIMUM_SOURCE_RECEIPT_IDS = 64

// The provider's answer.
/** Status line and all field lines: what is read before anything is believed. */
export const MAXIMUM_RESPONSE_HEAD_BYTES = 16_384
/** Status code and a reason phrase that nobody needs. */
export const MAXIMUM_STATUS_LINE_BYTES = 1_024
/** A field name, colon, space, value and line end at their own limits. */
export const MAXIMUM_RESPONSE_HEADER_LINE_BYTES = 8_384
/** A chunk size and its line end; extensions are refused. */
export const MAXIMUM_CHUNK_LINE_BYTES = 64
/** Sixteen hex digits hold any 64-bit size. */
export const MAXIMUM_CHUNK_SIZE_DIGITS = 16
/** Every address is checked, so their number is bounded. */
export const MAXIMUM_RESOLVED_ADDRESSES = 16

// Receipts and their log.
/** One receipt is one line; the protocol's bound. */
export const MAXIMUM_RECEIPT_LINE_BYTES = 8 * 1024 * 1024
/** What one verification reads at once; the protocol's bound. */
export const MAXIMUM_RECEIPT_INPUT_BYTES = 64 * 1024 * 1024
/** Receipts of one verification; the protocol's bound. */
export const MAXIMUM_RECEIPT_COUNT = 10_000
/** A text of a receipt: a reason or a guard's details is a sentence, never a payload. */
export const MAXIMUM_RECEIPT_TEXT_BYTES = 65_536
/** A path of a tree of 2^53 leaves has one sibling a level. */
export const MAXIMUM_AUDIT_PATH_COUNT = 64
/** Receipts between two checkpoints, unless configured: what an export proves the order of. */
export const DEFAULT_CHECKPOINT_RECEIPT_COUNT = 100
/** Larger batches leave too much unproven for too long. */
export const MAXIMUM_CHECKPOINT_RECEIPT_COUNT = 10_000

// Custody and administration.
/** Room for a key file in text form. */
export const MAXIMUM_SECRET_BYTES = 65_536
/** Administrators of one broker; each approval costs a verification. */
export const MAXIMUM_APPROVALS = 32
/** A forgotten approval is worthless within the hour. */
export const MAXIMUM_ADMINISTRATOR_TOKEN_LIFETIME_SECONDS = 3_600
/** ed25519 seeds and public keys, master and storage keys. */
export const KEY_BYTES = 32
/** Imported public keys kept: pins, clients and the callers of one day; admission costs a millisecond. */
export const MAXIMUM_CACHED_KEYS = 1_024
/** Digests of signatures that were found good: those of the operations under way, and no more memory than 100 KiB. */
export const MAXIMUM_CACHED_SIGNATURES = 1_024
/** ed25519: R and S. */
export const SIGNATURE_BYTES = 64

// Capability tokens and approvals.
/** Grants of one kind in a scope; each is compared with every grant of its parent. */
export const MAXIMUM_SCOPE_GRANTS_COUNT = 64
/** Constraints of one grant. */
export const MAXIMUM_CONSTRAINTS_COUNT = 32
/** Text of one constraint: a path, a pattern, an amount. */
export const MAXIMUM_CONSTRAINT_BYTES = 4_096
/** Entries of one list in a constraint. */
export const MAXIMUM_CONSTRAINT_VALUES_COUNT = 256
/** Links from the root to the token; every one costs a verification and a stored ancestor. */
export const MAXIMUM_DELEGATION_DEPTH = 16
/** What the guards before one call say; each is asked at every judgement and repeated in its receipts. */
export const MAXIMUM_CALL_GUARDS_COUNT = 64
/** The wire counts invocations in 32 bits. */
export const MAXIMUM_INVOCATIONS_COUNT = 0xffff_ffff
/** A currency on the wire. */
export const MAXIMUM_CURRENCY_BYTES = 64
/** One attenuation proof as it is carried; it is hashed, and judged by its hashes. */
export const MAXIMUM_ATTENUATION_PROOF_BYTES = 65_536
/** Arguments of one tool call, as canonical text. */
export const MAXIMUM_PARAMETERS_BYTES = 1_048_576
/** Opaque words of a request that only an installed verifier reads. */
export const MAXIMUM_SUPPLEMENTAL_BYTES = 65_536
/** People are asked for so long, unless the grant ends sooner. */
export const APPROVAL_TIMEOUT_SECONDS = 900
/** Longest life of a proposal that may be configured or accepted. */
export const MAXIMUM_APPROVAL_TIMEOUT_SECONDS = 3_600
/** Ids of proposals, tokens and approvers: shown to people. */
export const MAXIMUM_APPROVAL_IDENTIFIER_BYTES = 256

// Time.
/** A prepared stream never lives longer, whatever its documents say. */
export const MAXIMUM_PREPARED_LIFETIME_MS = 30_000
/** From the claim of the slot to the acknowledgement. */
export const PREPARATION_BUDGET_MS = 2_000
/** Longest budget that a configuration may give one read or one write. */
export const MAXIMUM_IPC_DEADLINE_MS = 30_000
/** Local peers answer at once; whoever needs longer is stuck. */
export const DEFAULT_IPC_DEADLINE_MS = 5_000
/** The slot is held while the authority is asked. */
export const MAXIMUM_AUTHORITY_TIMEOUT_MS = 30_000
/** Both ends are on one machine or keep NTP time. */
export const MAXIMUM_CLOCK_SKEW_SECONDS = 30
/** Older statements about liveness or revocation are not current. */
export const MAXIMUM_SNAPSHOT_AGE_SECONDS = 60

// Sockets.
/** sun_path holds 108 with its NUL; the protocol allows 100. */
export const MAXIMUM_SOCKET_PATH_BYTES = 100

// Load. What a client that may connect can take from the others.
/** Two descriptors a connection: far below the usual limit of 1,024. */
export const MAXIMUM_CONNECTIONS = 256
/** Of one uid: four uids that flood fill all places, and no fewer. */
export const MAXIMUM_CONNECTIONS_PER_UID = 64
/** Of one connecting process: half of its uid's, so that another process of the same uid always gets in. */
export const MAXIMUM_CONNECTIONS_PER_CONNECTOR = 32
/** Calls under way of one uid: half of its connections, so that waiting calls never hold all of them. */
export const MAXIMUM_CALLS_PER_UID = 32
/** Calls under way of one connecting process, likewise. */
export const MAXIMUM_CALLS_PER_CONNECTOR = 16
/** From its turn to its last byte: a local peer needs milliseconds, and others wait for their turn. */
export const LARGE_FRAME_READ_MS = 2_000
/** Log lines of one kind in a second; the rest is counted. A log line may wait for its reader. */
export const MAXIMUM_LOG_LINES_PER_SECOND = 50
/** Preparations that one grant may leave in a row: hosts crash, and tools are tried out. */
export const BACK_OFF_ABANDONED_COUNT = 3
/** For which those must have held the slot together, one whole lifetime: short ones take little from others. */
export const BACK_OFF_ABANDONED_MS = MAXIMUM_PREPARED_LIFETIME_MS
/** First wait of a grant whose preparations are abandoned; it doubles. */
export const FIRST_BACK_OFF_MS = 1_000
/** Longest such wait: ten times what one preparation can hold. */
export const MAXIMUM_BACK_OFF_MS = 300_000
/** Hangs of one destination in a row, of two grants at least before everybody is paused: three are no bad moment. */
export const PROVIDER_PAUSE_HANG_COUNT = 3
/** First pause of a destination that hangs; it doubles. */
export const FIRST_PROVIDER_PAUSE_MS = 10_000
/** Longest such pause: who mends a provider waits this long at most for the next probe. */
export const MAXIMUM_PROVIDER_PAUSE_MS = 120_000
/** A connection that is not open so long after its opening began hangs; sooner, it had too little time. */
export const MINIMUM_CONNECT_HANG_MS = 5_000
/** Grants, and destinations, of which this is remembered; each is a few hundred bytes. */
export const MAXIMUM_DECLINING_COUNT = 256
/** Connections that are accepted in one turn of the event loop; the next turn first reads those that are there. */
export const MAXIMUM_ACCEPTS_PER_TURN = 4
/** A reserved execution nonce with its operation and issuer, as the wire bounds it. */
export const MAXIMUM_NONCE_RESERVATION_BYTES = 16_384
/** Tool calls that one agent may have reserved and not started: one that only reserves leaves room for the others. */
export const MAXIMUM_OPEN_CALLS_OF_AGENT_COUNT = 64
/** An operation's document as a transition of its nonce retains it. */
export const MAXIMUM_OPERATION_DOCUMENT_BYTES = 262_144
/** Output of one tool call as canonical text: an executor's whole report is no larger. */
export const MAXIMUM_TOOL_OUTPUT_BYTES = 1_048_576
/** A raw outcome with everything around its output. */
export const MAXIMUM_TOOL_OUTCOME_BYTES = 4 * 1024 * 1024
/** Labels of one invocation context: sets of sources, not of documents. */
export const MAXIMUM_CONTEXT_LABELS_COUNT = 64
/** What a kernel freezes of a captured call, as it is retained. */
export const MAXIMUM_CALLER_CONTEXT_BYTES = 1_048_576
/** The kernel's own part of it: verdicts of guards, with their reasons. */
export const MAXIMUM_KERNEL_CONTEXT_BYTES = 524_288
/** A signed dispatch authorization as it is retained: every member of it has a bound of its own far below. */
export const MAXIMUM_CALLER_AUTHORIZATION_BYTES = 32_768
/** A signed delivery report with its output. */
export const MAXIMUM_CALLER_REPORT_BYTES = 1_048_576
/** Body of one call over HTTP: arguments or a report at their limit, and an authorization beside them. */
export const MAXIMUM_CALLER_HTTP_BYTES = MAXIMUM_CALLER_REPORT_BYTES + MAXIMUM_CALLER_AUTHORIZATION_BYTES
