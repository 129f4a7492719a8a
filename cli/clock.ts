// chio clock show | accept: whether the kernel believes its wall clock, and an administrator's signed word that it is
// right. Without a fault nothing is signed.
import type { ClockView } from '../protocol/operation-rpc.js'
import { asAdministrator } from './administrator.js'
import { withKernel } from './kernel-call.js'
import { type CommonOptions, print } from './output.js'
import { findState, layoutOfState } from './state.js'

export async function showClock(options: CommonOptions): Promise<void> {
  const clock = await withKernel(options, kernel => kernel.call('show_clock', {}))
  print(options, { schema: 'chio.clock.v1', clock }, clockLines(clock))
}

/** Signs exactly the clock that was shown: another one in the meantime is refused. */
export async function acceptClock(options: CommonOptions): Promise<void> {
  const layout = layoutOfState(findState(options.state))
  const accepted = await asAdministrator(layout, async administrator => {
    const clock = await administrator.kernel.call('show_clock', {})
    return clock.fault === null
      ? { clock, commitIndex: null }
      : { clock, commitIndex: await administrator.acceptClock(clock) }
  })
  const { clock, commitIndex } = accepted
  const done =
    commitIndex === null ? 'nothing to accept' : `accepted as it is, commit ${commitIndex}; admission goes on`
  print(options, { schema: 'chio.clock-accepted.v1', ...accepted }, [...clockLines(clock), done])
}

function clockLines({ fault, highWaterUnixMs, wallUnixMs }: ClockView): string[] {
  return [
    `wall clock   ${new Date(wallUnixMs).toISOString()}`,
    `last commit  ${new Date(highWaterUnixMs).toISOString()}`,
    fault ?? 'believed: it moves with the boot clock',
  ]
}
