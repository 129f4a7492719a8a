// Stops another process so that it stands still. A signal is only sent when `kill` returns: until each thread was
// scheduled to take it, the process goes on, and may do what the test says that it cannot.
import { readdirSync, readFileSync } from 'node:fs'
import { expect } from 'vitest'

/** Sends SIGSTOP and waits until no thread of the process runs any more. */
export async function standStill(pid: number): Promise<void> {
  process.kill(pid, 'SIGSTOP')
  await expect.poll(() => statesOf(pid), { interval: 1, timeout: 10_000 }).toEqual(new Set(['T']))
}

/** proc_pid_stat(5): the state follows the name, which is in parentheses and may hold any character. */
function statesOf(pid: number): Set<string | undefined> {
  return new Set(
    readdirSync(`/proc/${pid}/task`).map(task => {
      const stat = readFileSync(`/proc/${pid}/task/${task}/stat`, 'latin1')
      return stat.slice(stat.lastIndexOf(')') + 2)[0]
    }),
  )
}
