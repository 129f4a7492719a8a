// One byte of a ledger that is not as it was written, anywhere in its database or its head: what was retained comes back
// as it was, or the ledger is refused in words. Never a second effect, never another result, never a fault of ours.
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { headPathOf } from '../../executor/ledger-head.js'
import { isBrokerError } from '../../protocol/errors.js'
import { Random } from '../../selftest/fuzz/random.js'
import { FULL_RUN_TIMEOUT_MS, fullCount } from '../support/counts.js'
import { authorizationOf, EXECUTOR_KEY, ExecutorWorld, hexOf } from '../support/executor-world.js'

const FLIPS = fullCount(40, 1_500)
const seed = Date.now() % 1_000_000
let world: ExecutorWorld
let report: string
let kept: { readonly path: string; readonly bytes: Buffer }[]
const authorization = authorizationOf('one', { expires_at_unix_ms: Date.now() + 3_600_000 })

beforeAll(async () => {
  world = await ExecutorWorld.begin(2)
  report = hexOf(await world.execute(authorization))
  await (await world.open()).extend(1, EXECUTOR_KEY)
  kept = [world.path, headPathOf(world.path)].map(path => ({ bytes: readFileSync(path), path }))
})
afterAll(() => world.end())

/** The state before, in the very files, but for one byte of one of them. */
function flipOne(random: Random): string {
  for (const { bytes, path } of kept) writeFileSync(path, bytes)
  writeFileSync(`${world.folder}/owner.lock`, '')
  for (const rest of ['-wal', '-shm']) rmSync(`${world.path}${rest}`, { force: true })
  const { bytes, path } = kept[random.once(5) ? 1 : 0] ?? { bytes: Buffer.alloc(0), path: '' }
  const at = random.below(bytes.length)
  const mask = 1 + random.below(255)
  const flipped = Buffer.from(bytes)
  flipped[at] = (flipped[at] ?? 0) ^ mask
  writeFileSync(path, flipped)
  return `seed ${seed}: byte ${at} of ${path.slice(world.folder.length + 1)} ^ ${mask}`
}

/** What an executor that comes then is told: the retained bytes, a refusal, or what it must never be told. */
async function toldThen(): Promise<string> {
  try {
    const again = hexOf(await world.execute(authorization))
    return again === report ? 'the report' : 'another report'
  } catch (error) {
    return isBrokerError(error) ? 'a refusal' : `a fault: ${String(error)}`
  }
}

test(
  `${FLIPS} single bytes that changed, each alone`,
  async () => {
    const random = new Random(seed)
    const told = new Map<string, number>()
    for (let round = 0; round < FLIPS; round += 1) {
      const flip = flipOne(random)
      const word = await toldThen()
      const allowed = expect.stringMatching(/^(the report|a refusal)$/) as string
      expect({ effects: world.effects().length, flip, word }).toEqual({ effects: 1, flip, word: allowed })
      told.set(word, (told.get(word) ?? 0) + 1)
    }
    expect(told.get('a refusal')).toBeGreaterThan(0)
  },
  FULL_RUN_TIMEOUT_MS,
)
