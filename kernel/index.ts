// What the package exports as `chio-broker/kernel`: an embedding starts a kernel over a store of its own.
export type { BrokerRecords, RetainedAttempt, Unanswered } from './settling/broker-records.js'
export type { ToolCallSettings } from './calls/call-policy.js'
export { type KernelConfig, parseKernelConfig, readKernelConfig } from './config.js'
export type { CallGuard, JudgedCall } from './calls/evaluate-call.js'
export type { DeliveredOutput, OutputGuard } from './output/output-guards.js'
export { RefusedDecision } from './log/refused-decision.js'
export { embedKernel, provisionKernel, startKernel } from './start-kernel.js'
