// Owns the thread in which one target runs. Started by watched-run.ts only.
import { parentPort, workerData } from 'node:worker_threads'
import { systemClock } from '../../native/clock.js'
import { runTarget } from './fuzz-run.js'
import { fuzzTarget } from './targets.js'
import { CurrentInput, type WatchedOrder } from './watched-run.js'

const { order, memory } = workerData as { order: WatchedOrder; memory: SharedArrayBuffer }
const target = fuzzTarget(order.target)
if (target === undefined) throw new RangeError(`"target" expected a fuzz target, got ${order.target}`)
const current = new CurrentInput(memory)
const result = await runTarget(target, {
  seed: order.seed,
  milliseconds: order.milliseconds,
  clock: systemClock,
  onInput: input => current.set(input),
})
parentPort?.postMessage(result)
