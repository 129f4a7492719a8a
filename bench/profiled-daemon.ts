// Runs a daemon's own program under the sampling profiler of its own process: a daemon refuses foreign Node options,
// so the profiler is started from inside. Arguments: `FILE NAME ARGS…`; the profile is written when it ends.
// Must never: be started by anything but a bench.
import { writeFileSync } from 'node:fs'
import { Session } from 'node:inspector'

const SAMPLING_INTERVAL_US = 500

const [file = '', name = '', ...args] = process.argv.slice(2)
process.argv.splice(2, process.argv.length, ...args)

const session = new Session()
session.connect()
session.post('Profiler.enable')
session.post('Profiler.setSamplingInterval', { interval: SAMPLING_INTERVAL_US })
session.post('Profiler.start')

/** The inspector of the own thread answers at once, so that this may stand in the last tick. */
process.on('exit', () => {
  session.post('Profiler.stop', (error, { profile }) => {
    if (error === null) writeFileSync(file, JSON.stringify(profile))
  })
})

await import(`../cli/${name}.js`)
