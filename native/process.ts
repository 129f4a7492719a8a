/**
 * Hardening of our own process. Fails closed: what cannot be verified is thrown.
 * Source: prctl(2) PR_SET_DUMPABLE, setrlimit(2) RLIMIT_CORE, sigaction(2).
 */
import { addon } from './addon.js'

/** No core dump, no ptrace, no /proc/PID reading by the same uid; verified. Call it before a key is read. */
export function forbidDumps(): void {
  addon.forbidDumps()
}

/**
 * SIGUSR1, from whoever may signal us, opens no debugger any more; verified. One that is open already stays: see
 * `node:inspector`.
 */
export function forbidDebugger(): void {
  addon.ignoreDebuggerSignal()
}
