// What the package exports as a library: open a host, run one brokered operation, read what it left.
export {
  cagePolicy,
  type CagePolicy,
  type CagePolicyChoices,
  type FinishedTool,
  resolveTool,
} from '../cage/index.js'
export { bootIdentity, systemClock } from '../native/clock.js'
export { BrokerError, type ErrorCode, isBrokerError } from '../protocol/errors.js'
export { type SigningKey, signingKey } from '../protocol/keys.js'
export { readKey } from '../system/key-file.js'
export { type RequestedExecution } from './admission.js'
export { type BrokeredRun, type BrokeredRunRequest, type RunProgress, runBrokered } from './brokered-run.js'
export { openJournalFrame } from './journal.js'
export { launchBrokered, type LaunchedRun, type LaunchRequest, type ServerOutput } from './launched-run.js'
export type { McpVerdict } from './mcp-call.js'
export { brokerMcpTool } from './mcp-program.js'
export { type HostPins, parseHostPins } from './pins.js'
export { readRecordedRun, type RecordedRun } from './recorded-run.js'
export { type HostOptions, type HostSession, openHost } from './session.js'
export type { TimelineStep } from './timeline.js'
