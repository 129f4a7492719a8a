// Owns a run in a thread of its own, watched from outside: a reader that never comes back cannot report itself.
// The input that is being read lies in memory that both threads see, so that it is known when the thread is ended.
import { Worker } from 'node:worker_threads'
import type { Finding, TargetResult } from './fuzz-run.js'

/** No input takes this long on any machine, a stopped one aside. */
const HANG_MS = 60_000
const LOOK_MS = 500
const COUNTER = 0
const LENGTH = 1
const HEADER_BYTES = 8

export interface WatchedOrder {
  readonly target: string
  readonly seed: number
  readonly milliseconds: number
}

/** The memory that both threads see: a counter, the length of the input, the input. */
export class CurrentInput {
  readonly memory: SharedArrayBuffer
  readonly #header: Int32Array
  readonly #bytes: Uint8Array

  constructor(memory: SharedArrayBuffer) {
    this.memory = memory
    this.#header = new Int32Array(memory, 0, HEADER_BYTES / 4)
    this.#bytes = new Uint8Array(memory, HEADER_BYTES)
  }

  static ofBytes(maximumInputBytes: number): CurrentInput {
    return new CurrentInput(new SharedArrayBuffer(HEADER_BYTES + maximumInputBytes))
  }

  get count(): number {
    return Atomics.load(this.#header, COUNTER)
  }

  set(input: Uint8Array): void {
    const kept = input.subarray(0, this.#bytes.length)
    this.#bytes.set(kept)
    this.#header[LENGTH] = kept.length
    Atomics.add(this.#header, COUNTER, 1)
  }

  take(): Uint8Array {
    return Uint8Array.from(this.#bytes.subarray(0, this.#header[LENGTH]))
  }
}

/** Runs one target. A hang ends the run; it is a finding then, and the counts of the run are lost. */
export async function runWatched(order: WatchedOrder, maximumInputBytes: number): Promise<TargetResult> {
  const current = CurrentInput.ofBytes(maximumInputBytes)
  const worker = new Worker(new URL('./worker.js', import.meta.url), {
    workerData: { order, memory: current.memory },
  })
  const ended = new Promise<TargetResult>((resolve, reject) => {
    worker.on('message', resolve)
    worker.on('error', reject)
    worker.on('exit', code => reject(new Error(`the fuzz thread ended with ${code} before it reported`)))
  })
  const { hung, stop } = watch(current)
  try {
    return await Promise.race([ended, hung.then(finding => hungResult(order, finding))])
  } finally {
    stop()
    await worker.terminate()
  }
}

function watch(current: CurrentInput): { hung: Promise<Finding>; stop: () => void } {
  let seen = -1
  let unmovedMs = 0
  let timer: NodeJS.Timeout | undefined
  const hung = new Promise<Finding>(resolve => {
    timer = setInterval(() => {
      unmovedMs = current.count === seen ? unmovedMs + LOOK_MS : 0
      seen = current.count
      if (unmovedMs >= HANG_MS) resolve({ sentence: 'a reader did not come back', input: current.take() })
    }, LOOK_MS)
  })
  return { hung, stop: () => clearInterval(timer) }
}

function hungResult({ target, seed, milliseconds }: WatchedOrder, finding: Finding): TargetResult {
  const none = { inputs: 0, accepted: 0, refused: {}, signals: 0, slowestMs: HANG_MS }
  return { target, seed, seconds: milliseconds / 1_000, ...none, findings: [finding] }
}
