// Owns kernels that serve a trial's own STATE under the kernel's own uid, and do what the daemon's binary never would:
// end themselves at a cutpoint, or look at a wall clock that is ahead. Everything else of them is what ships.
import type { Trial } from '../../selftest/trial.js'
import { type CompiledChild, startChild } from './compiled-child.js'

const SCRIPT = `
const [root, configPath, choices, cutpoint, aheadMs] = args
const part = name => import(root + '/dist/' + name + '.js')
const { startKernel } = await part('kernel/start-kernel')
const { readKernelConfig } = await part('kernel/config')
const { readKernelKeys } = await part('kernel/kernel-keys')
const { systemClock } = await part('native/clock')
const { BrokerRecordsClient } = await part('client/broker-records')
const config = readKernelConfig(configPath)
const { broker, socketGid, tenantScope } = config
const pins = { socketPath: broker.socketPath, uid: broker.uid, socketGid: socketGid === null ? null : broker.gid,
  receiptKey: broker.receiptKey, tenantScope, requestFrameBytes: 2 ** 23, responseFrameBytes: 2 ** 25 }
const clock = { bootNs: () => systemClock.bootNs(), unixMs: () => systemClock.unixMs() + Number(aheadMs) }
await startKernel({ config, clock, keys: readKernelKeys(JSON.parse(choices)),
  records: new BrokerRecordsClient(pins, systemClock),
  atCutpoint: name => { if (name === cutpoint) process.kill(process.pid, 'SIGKILL') } })
say({ ready: true })
`

export interface KernelDeviation {
  /** Ends itself with SIGKILL there. */
  readonly cutpoint?: string
  /** How far its wall clock is ahead: for what is due much later. */
  readonly aheadMs?: number
}

/** Starts one in the place of the trial's kernel, which must have ended. Resolves when it serves. */
export async function startKernelOf(trial: Trial, deviation: KernelDeviation): Promise<CompiledChild> {
  const { identity, groups } = trial.command('kernel')
  const { config, keys } = trial.layout.kernel
  const choices = Object.fromEntries(Object.entries(keys).map(([name, file]) => [name, { file }]))
  const apart = process.geteuid?.() === 0 && identity.uid !== 0
  const ids = [`--reuid=${identity.uid}`, `--regid=${identity.gid}`, `--groups=${groups.join(',')}`]
  const { cutpoint = '', aheadMs = 0 } = deviation
  const child = startChild(
    SCRIPT,
    [trial.programRoot, config, JSON.stringify(choices), cutpoint, String(aheadMs)],
    { wrapper: ['setpriv', ...(apart ? ids : []), '--pdeathsig=KILL', '--'] },
  )
  await child.next()
  return child
}
