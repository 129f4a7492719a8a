// What the package exports as `chio-broker/kernel`: an embedding starts a kernel over a store of its own. Its tool calls
// are `kernel.calls`: reserveCall (or preflight and reserve), start, reconcile; everything else is read by `kernel`.
export type { BrokerRecords, RetainedAttempt, Unanswered } from './settling/broker-records.js'
export type { ToolCallSettings } from './calls/call-policy.js'
export type { ToolCalls } from './calls/tool-calls.js'
export { type ExpectedBounds, expectedInvocation } from './calls/expected-invocation.js'
export { type KernelConfig, parseKernelConfig, readKernelConfig } from './config.js'
export type { CallGuard, JudgedCall } from './calls/evaluate-call.js'
export type { Kernel } from './kernel.js'
export type { Caller, KernelKeys } from './kernel-context.js'
export type { DeliveredOutput, OutputGuard } from './output/output-guards.js'
export { RefusedDecision } from './log/refused-decision.js'
export {
  embedKernel,
  provisionKernel,
  type RunningKernel,
  startKernel,
  type StartOptions,
} from './start-kernel.js'
