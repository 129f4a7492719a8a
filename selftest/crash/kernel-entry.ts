// The kernel under test: the very start function of the daemon, with cutpoints and a clock that is steered.
// Must never: be started by anything but a crash run.
import { writeSync } from 'node:fs'
import { BrokerRecordsClient } from '../../client/broker-records.js'
import { brokerPins, readKernelConfig } from '../../kernel/config.js'
import { KERNEL_KEY_NAMES, type KeyChoices, readKernelKeys } from '../../kernel/kernel-keys.js'
import type { KernelLog } from '../../kernel/kernel-context.js'
import { startKernel } from '../../kernel/start-kernel.js'
import { startupHygiene } from '../../system/startup.js'
import { CRASH_TOOL } from './call-acts.js'
import { CRASH_EXECUTOR } from './delivery-acts.js'
import { entryArguments, startedOrSaid } from './entry-arguments.js'

const STANDARD_ERROR = 2

startupHygiene()
const { config: path, keyFiles, steering } = entryArguments(KERNEL_KEY_NAMES)
const config = readKernelConfig(path)
const keys = Object.fromEntries(Object.entries(keyFiles).map(([name, file]) => [name, { file }]))
const log: KernelLog = event => void writeSync(STANDARD_ERROR, `${JSON.stringify(event)}\n`)
const { atCutpoint, clock } = steering
const kernel = await startedOrSaid(() =>
  startKernel({
    atCutpoint,
    callerExecutor: CRASH_EXECUTOR,
    clock,
    config,
    keys: readKernelKeys(keys as KeyChoices),
    log,
    toolCalls: { targets: [CRASH_TOOL] },
    records: new BrokerRecordsClient(brokerPins(config), clock),
  }),
)
steering.obey()
process.on('SIGTERM', () => void kernel.close().then(() => process.exit(0)))
log({ level: 'info', event: 'ready' })
