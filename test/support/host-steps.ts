// Owns the moments between the steps of a run: a story acts just before or just after a named step, in the host's own
// process and order. The steps themselves are the host's.
import { vi } from 'vitest'
import { Timeline } from '../../host/timeline.js'

export type HostStep =
  | 'authorize'
  | 'cage'
  | 'finalize'
  | 'grant'
  | 'handoff'
  | 'outcome'
  | 'prepare'
  | 'register'
  | 'reserve'
  | 'start'
  | 'tool'

type Step = <T>(this: Timeline, name: string, run: () => Promise<T>) => Promise<T>
const step: Step = Reflect.get(Timeline.prototype, 'step')

/** Acts before a step; its throw is the step's. `vi.restoreAllMocks` ends it. */
export function beforeStep(act: (name: HostStep) => Promise<void> | void): void {
  vi.spyOn(Timeline.prototype, 'step').mockImplementation(async function (this: Timeline, name, run) {
    await act(name as HostStep)
    return step.call(this, name, run) as never
  })
}

/** Acts after a step that succeeded. */
export function afterStep(act: (name: HostStep) => Promise<void> | void): void {
  vi.spyOn(Timeline.prototype, 'step').mockImplementation(async function (this: Timeline, name, run) {
    const value = await step.call(this, name, run)
    await act(name as HostStep)
    return value
  })
}
