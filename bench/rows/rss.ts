// Row rss: what the broker holds in memory after work, against a Node process that holds nothing.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { openInstallation } from '../installation.js'
import { interleave } from '../interleave.js'
import { wholeOperation } from '../operation.js'
import { type BenchRow, oursJudged } from '../row.js'

const OPERATIONS = 50
const IDLE_MS = 1_000
const BETWEEN_SAMPLES_MS = 50

/** VmRSS as the kernel counts it. */
function residentMebibytes(pid: number): number {
  const kibibytes = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1]
  if (kibibytes === undefined) throw new Error(`process ${pid}: expected a VmRSS line, got none`)
  return Number(kibibytes) / 1_024
}

export const rss: BenchRow = {
  id: 'rss',
  ours: 'idle broker after work',
  theirs: 'an empty Node process',
  unit: 'MiB',
  goal: oursJudged('≤ 90 MiB', ours => ours.p50 <= 90),
  rounds: 20,
  async measure(_lab, rounds) {
    const installation = await openInstallation()
    const empty = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1e9)'], { env: {}, stdio: 'ignore' })
    const ended = once(empty, 'exit')
    try {
      for (let done = 0; done < OPERATIONS; done++) await wholeOperation(installation)
      await sleep(IDLE_MS)
      const measured = await interleave(
        rounds,
        async () => {
          await sleep(BETWEEN_SAMPLES_MS)
          return residentMebibytes(installation.trial.broker.pid)
        },
        async () => residentMebibytes(empty.pid ?? 0),
      )
      return { ...measured, note: `VmRSS. ours: after ${OPERATIONS} operations and a second of rest` }
    } finally {
      empty.kill('SIGTERM')
      await ended
      await installation.close()
    }
  },
}
