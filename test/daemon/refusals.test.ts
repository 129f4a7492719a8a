// Walks every row of the refusal table against a running broker: a real peer brings it there, and what the peer
// sees, what the operator reads and what becomes of the attempt is what the row says.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { peerSees, type RefusalMoment } from '../../daemon/refusal-row.js'
import { refusalsDocument } from '../../daemon/refusals-document.js'
import { REFUSALS, type RefusalReason, refusalRow } from '../../daemon/refusals.js'
import { packageRoot } from '../../native/paths.js'
import { startWorld } from '../support/broker-world.js'
import { wordOf } from '../support/raw-broker.js'
import { CONNECTION_STORIES } from '../support/refusal-stories/connection.js'
import { CONSUMPTION_STORIES } from '../support/refusal-stories/consumption.js'
import { DISPATCHED_STORIES, START_STORIES } from '../support/refusal-stories/dispatched.js'
import { HELD_STORIES } from '../support/refusal-stories/held.js'
import { PREPARATION_STORIES } from '../support/refusal-stories/preparation.js'
import { REQUEST_STORIES } from '../support/refusal-stories/request.js'
import type { Story } from '../support/refusal-stories/story.js'

const STORIES: Readonly<Record<string, Story>> = {
  ...CONNECTION_STORIES,
  ...REQUEST_STORIES,
  ...PREPARATION_STORIES,
  ...HELD_STORIES,
  ...CONSUMPTION_STORIES,
  ...DISPATCHED_STORIES,
  ...START_STORIES,
}
const rows = (Object.keys(REFUSALS) as RefusalReason[]).flatMap(reason =>
  refusalRow(reason).when.map(moment => ({ name: `${reason} at ${moment}`, reason, moment })),
)

test('docs/refusals.md is the refusal table', () => {
  expect(readFileSync(join(packageRoot(), 'docs', 'refusals.md'), 'utf8')).toBe(refusalsDocument())
})

test('every row has its story, and every story its row', () => {
  expect(Object.keys(STORIES).sort()).toEqual(rows.map(row => row.name).sort())
})

describe('a refused peer', () => {
  test.each(rows)('$name', async ({ name, reason, moment }) => {
    const story = STORIES[name]
    if (story === undefined) throw new Error('no story')
    const world = await startWorld(story.world)
    try {
      const { seen, attempt, decryptions } = await story.tell(world)
      if (seen !== undefined) expect(wordOf(seen)).toBe(expectedWord(reason, moment))
      await settled(() => world.linesOf(reason).length > 0)
      expect(world.lines).toContainEqual(expect.objectContaining({ reason }))
      const row = refusalRow(reason)
      if (world.isRunning) {
        if (row.attempt !== 'unchanged' && attempt !== undefined) {
          await settled(async () => (await attempt.status()).state === row.attempt)
          expect(await attempt.status()).toMatchObject({ state: row.attempt, reason, held: false })
        }
        const { state, decryptions: seenDecryptions } = world.broker.slotStatus()
        expect({ state, decryptions: seenDecryptions }).toEqual({
          state: 'free',
          decryptions: decryptions ?? seenDecryptions,
        })
        if (isBeforeDispatch(moment) && decryptions === undefined && name in CONSUMPTION_STORIES) {
          expect(seenDecryptions).toBe(0)
          expect(world.provider.hits).toBe(0)
        }
      }
    } finally {
      await world.close()
    }
  })
})

function isBeforeDispatch(moment: RefusalMoment): boolean {
  return moment === 'preparation' || moment === 'held' || moment === 'consumption'
}

function expectedWord(reason: RefusalReason, moment: RefusalMoment): string {
  return peerSees(refusalRow(reason), moment).replace('on replay: ', '')
}

async function settled(holds: () => boolean | Promise<boolean>): Promise<void> {
  for (let look = 0; look < 200 && !(await holds()); look += 1) await delay(10)
}
