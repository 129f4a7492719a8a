// The broker under test: the very start function of the daemon, with cutpoints and a clock that is steered.
// Must never: be started by anything but a crash run.
import { startBroker } from '../../daemon/broker.js'
import { readConfig } from '../../daemon/config.js'
import { openLog } from '../../daemon/log.js'
import { signingKey } from '../../protocol/keys.js'
import { readKey } from '../../system/key-file.js'
import { startupHygiene } from '../../system/startup.js'
import { entryArguments, startedOrSaid } from './entry-arguments.js'

startupHygiene()
const { config, keyFiles, steering } = entryArguments(['master', 'receipt'])
const { atCutpoint, clock } = steering
const broker = await startedOrSaid(() =>
  startBroker({
    config: readConfig(config),
    masterKey: readKey({ file: keyFiles['master'] ?? '' }, 'master key'),
    receiptKey: signingKey(readKey({ file: keyFiles['receipt'] ?? '' }, 'receipt signing key')),
    clock,
    log: openLog(clock),
    atCutpoint,
  }),
)
steering.obey()
process.on('SIGTERM', () => void broker.close().then(() => process.exit(0)))
broker.sayReady()
