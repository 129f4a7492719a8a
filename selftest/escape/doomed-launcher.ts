// The launcher that killed-launcher.ts kills: opens a cage, hands it the stream at 3, lets the probe run that leaves a
// process behind, says who is in it, and waits. Never ends by itself.
import { cagePolicy, type CageIdentity, openCage, resolveTool } from '../../cage/index.js'
import { nativePath } from '../../native/index.js'
import { startupHygiene } from '../../system/startup.js'

const STREAM = 3
const FRAME = Uint8Array.of(0, 0, 0, 1, 0)

startupHygiene({ environment: {} })
const identity = JSON.parse(process.argv[2] ?? 'null') as CageIdentity | null
const policy = cagePolicy({ ...resolveTool(nativePath('cage-probe'), ['linger']), exec: 'once', identity })
const waiting = await openCage(policy)
const running = (await waiting.handOff(STREAM, FRAME)).go()
const { pid, wardenPid } = waiting.census
// The tool says so when its child is there.
running.stdout.onChunk(() => console.log(JSON.stringify({ pid, wardenPid })))
await running.finished
