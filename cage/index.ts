/**
 * The door of cage/ for hosts: policy in, a waiting cage out. Nothing here decides; see cage.ts for the life of one.
 */
export { openCage, ArmedCage, WaitingCage } from './cage.js'
export type { Census, OpenOptions } from './cage.js'
export { RunningCage } from './running.js'
export type { FinishedTool } from './running.js'
export { cagePolicy } from './policy.js'
export type {
  CageIdentity,
  CageLimits,
  CagePolicy,
  CagePolicyChoices,
  ExecPolicy,
  FilterProfile,
  ToolCommand,
  ToolInput,
} from './policy.js'
export { CageRefusal } from './refusal.js'
export { escapeForTerminal } from './stdio.js'
export { resolveTool } from './tool.js'
export type { ResolvedTool } from './tool.js'
export { BUBBLEWRAP_PATH, findBubblewrap } from './bubblewrap.js'
