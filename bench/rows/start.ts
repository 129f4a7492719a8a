// Row start: what the broker does between its start and the moment it serves, against Node starting and ending.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Trial } from '../../selftest/trial.js'
import { allowedEnvironment } from '../../system/environment.js'
import { startBrokerOf } from '../daemon-restart.js'
import { openInstallation } from '../installation.js'
import { interleave, millisecondsOf } from '../interleave.js'
import { type BenchRow, ratioAtMost } from '../row.js'

const NOTE =
  'ours: chio-brokerd from spawn to its ready line, store and keys opened, open attempts settled, socket bound. ' +
  'theirs: node -e 0 from spawn to exit. Both through setpriv, with the same environment'

async function startedBroker(trial: Trial): Promise<number> {
  const started = process.hrtime.bigint()
  const broker = await startBrokerOf(trial)
  const took = Number(process.hrtime.bigint() - started) / 1e6
  await broker.stop()
  return took
}

async function bareNode({ identities }: Trial): Promise<void> {
  const { uid, gid } = identities.broker
  const apart = uid !== process.geteuid?.()
  const ids = apart ? [`--reuid=${uid}`, `--regid=${gid}`, `--groups=${gid}`, '--no-new-privs'] : []
  const child = spawn('setpriv', [...ids, '--pdeathsig=TERM', '--', process.execPath, '-e', '0'], {
    cwd: '/',
    env: allowedEnvironment({}),
    stdio: 'ignore',
  })
  await once(child, 'exit')
}

export const start: BenchRow = {
  id: 'start',
  ours: 'chio-brokerd start → ready',
  theirs: 'node -e 0',
  unit: 'ms',
  goal: ratioAtMost(3, '≤ 3 ×'),
  rounds: 20,
  async measure(_lab, rounds) {
    const installation = await openInstallation()
    const { trial } = installation
    try {
      await trial.broker.stop()
      const measured = await interleave(
        rounds,
        () => startedBroker(trial),
        () => millisecondsOf(() => bareNode(trial)),
      )
      return { ...measured, note: NOTE }
    } finally {
      await installation.close()
    }
  },
}
