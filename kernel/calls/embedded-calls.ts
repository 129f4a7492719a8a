// Owns: the moves of tool calls over the embedded store: one fenced commit each.
// Must never: hold SQL, or judge outside the commit that a verdict enters. Source: the caller API of the kernel.
import { preflightCall, reserveCall, startCall } from './call-moves.js'
import type {
  CallDecision,
  CallStore,
  PreflightCommand,
  ReserveCallCommand,
  StartCallCommand,
} from './call-store.js'
import type { Commit } from '../log/embedded-log.js'

export class EmbeddedCallStore implements CallStore {
  readonly #commit: Commit

  constructor(commit: Commit) {
    this.#commit = commit
  }

  preflightCall(command: PreflightCommand): Promise<CallDecision> {
    return this.#commit('call_preflighted', move => preflightCall(move, command))
  }

  reserveCall(command: ReserveCallCommand): Promise<CallDecision> {
    return this.#commit('call_reserved', move => reserveCall(move, command))
  }

  startCall(command: StartCallCommand): Promise<CallDecision> {
    return this.#commit('call_judged', move => startCall(move, command))
  }
}
