/**
 * Hardening of our own process. Fails closed: what cannot be verified is thrown.
 * Source: prctl(2) PR_SET_DUMPABLE, setrlimit(2) RLIMIT_CORE.
 */
import { addon } from './addon.js'

/** No core dump, no ptrace, no /proc/PID reading by the same uid; verified. Call it before a key is read. */
export function forbidDumps(): void {
  addon.forbidDumps()
}
