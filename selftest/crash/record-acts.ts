// Owns the rows about the kernel's own records: a statement of what a provider did, and a clock that is accepted.
// Must never: leave the kernel with a clock that it does not believe: the rows after it would be refused.
import { randomUUID } from 'node:crypto'
import type { Administrator } from '../../client/administrator.js'
import type { ApprovalActs as Acts } from './approval-acts.js'
import type { CrashWorld } from './crash-world.js'
import { runOnce } from './stories.js'

/** More than the skew that an installation permits, and less than the life of an approval. */
const JUMP_MS = 15_000

/** A statement about an operation that was dispatched; done once it stands beside it. */
export async function stateActs(world: CrashWorld, by: Administrator): Promise<Acts> {
  const { kernel } = world.session
  await runOnce(world, `stated ${randomUUID()}`)
  const { operations } = await kernel.call('list', { limit: 1 })
  const operationId = operations[0]?.operationId ?? ''
  return {
    ask: () => by.reconcile({ operationId, provider: 'acted', statement: 'counted at the provider' }),
    isDone: async () =>
      (await kernel.call('explain', { id: operationId })).explanation.reconciliations.length === 1,
  }
}

/** A clock that jumped ahead is accepted. Its successor has a right one, which is behind what was accepted. */
export async function correctActs(world: CrashWorld, by: Administrator): Promise<Acts> {
  await world.steered('kernel').stepWall(JUMP_MS)
  return {
    ask: async () => by.acceptClock(await by.kernel.call('show_clock', {})),
    isDone: async () => {
      const clock = await by.kernel.call('show_clock', {})
      if (clock.fault === null) return false
      await by.acceptClock(clock)
      return true
    },
  }
}
