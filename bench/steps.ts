// Owns the answer to where the time of one operation goes: each step as the host sees it, through a waiting cage, in
// microseconds.
import { openCage } from '../cage/index.js'
import type { BenchOptions } from './bench-options.js'
import { cagedOperation } from './caged-operation.js'
import type { Lab } from './lab.js'
import { quantileOf } from './statistics.js'

const ROUNDS = 100
const WARM_UP_SHARE = 0.5
const SCHEMA = 'chio.bench-steps.v1'

type Durations = Map<string, number[]>

export async function showSteps(lab: Lab, { json, markdown, rounds: asked }: BenchOptions): Promise<void> {
  const rounds = asked ?? ROUNDS
  const durations: Durations = new Map()
  for (let round = -Math.ceil(rounds * WARM_UP_SHARE); round < rounds; round++) {
    await oneOperation(lab, round < 0 ? new Map() : durations)
  }
  const steps = [...durations].map(([name, samples]) => ({
    name,
    p50Us: Math.round(quantileOf(samples, 0.5)),
    p95Us: Math.round(quantileOf(samples, 0.95)),
  }))
  if (json) console.log(JSON.stringify({ schema: SCHEMA, steps }))
  else console.log((markdown ? markdownOf(steps) : linesOf(steps)).join('\n'))
}

async function oneOperation(lab: Lab, durations: Durations): Promise<void> {
  const cage = await openCage(lab.cages().chioExec)
  try {
    await timedStep(durations, 'whole operation', async () =>
      cagedOperation(await lab.installation(), cage, (name, step) => timedStep(durations, name, step)),
    )
  } finally {
    await cage.close()
  }
}

async function timedStep<T>(durations: Durations, name: string, step: () => Promise<T>): Promise<T> {
  const started = process.hrtime.bigint()
  try {
    return await step()
  } finally {
    const tookUs = Number(process.hrtime.bigint() - started) / 1e3
    durations.set(name, [...(durations.get(name) ?? []), tookUs])
  }
}

interface StepFigures {
  readonly name: string
  readonly p50Us: number
  readonly p95Us: number
}

function linesOf(steps: readonly StepFigures[]): string[] {
  const line = (name: string, p50: string, p95: string): string =>
    `${name.padEnd(16)} ${p50.padStart(9)} ${p95.padStart(9)}`
  return [line('step', 'p50 µs', 'p95 µs'), ...steps.map(s => line(s.name, String(s.p50Us), String(s.p95Us)))]
}

function markdownOf(steps: readonly StepFigures[]): string[] {
  const rows = steps.map(({ name, p50Us, p95Us }) => `| ${name} | ${p50Us} | ${p95Us} |`)
  return ['| step | p50 µs | p95 µs |', '| --- | ---: | ---: |', ...rows]
}
