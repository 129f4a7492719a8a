// What `chio-broker/client` exports: the broker and kernel clients, and the tool's side of descriptor 8.
export { type AuthorizedAttempt, BrokerClient } from './broker-client.js'
export type { BrokerPins, KernelPins } from './broker-pins.js'
export { KernelClient } from './kernel-client.js'
export { type RecordedOutcome, readOutcome, verifyOutcome } from './outcome.js'
export { type Preparation, prepareDispatchConnection } from './prepare.js'
export { PreparedStream } from './prepared-stream.js'
export { adoptPreparedStream, TOOL_DESCRIPTOR } from './tool-stream.js'
export { preflightCall, reserveAfterPreflight, startReserved } from './tool-calls.js'
