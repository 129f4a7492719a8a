/**
 * chio selftest cage, as an operator runs it: as root, where the tool has a uid of its own, and as an ordinary user,
 * whose uid the tool shares. Both must hold, attempt by attempt.
 */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { attemptsHere } from '../../selftest/escape/probe-report.js'
import { ATTEMPTS, CAGE_KINDS } from '../../selftest/escape/escape.js'
import { STREAM_GAMES } from '../../selftest/escape/stream-game.js'
import { chio, documentOf, type Ended } from '../support/chio.js'
import { SingleUser } from '../support/single-user.js'
import { SKIP_REASONS } from '../support/skips.js'
import { testWhen } from '../support/when.js'

// Fourteen operations, four of them with two hundred attempts; more than seconds only beside busy neighbours.
vi.setConfig({ testTimeout: 600_000 })

interface Row {
  readonly name: string
  readonly answers: readonly { readonly answer: string; readonly verdict: string }[]
}

interface Story {
  readonly name: string
  readonly ok: boolean
  readonly found: string
}

/** Every attempt refused or leading nowhere, every story held, and none left out. */
function expectHeld({ status, stderr, stdout }: Ended, cage: object): void {
  expect(stderr).toBe('')
  const document = documentOf(stdout)
  const rows = document['attempts'] as Row[]
  const open = rows.filter(({ answers }) => answers.some(({ verdict }) => verdict === 'open'))
  const stories = [...(document['streams'] as Story[]), ...(document['outside'] as Story[])]
  expect(open).toEqual([])
  expect(stories.filter(({ ok }) => !ok)).toEqual([])
  expect(document).toMatchObject({ schema: 'chio.escape.v1', held: true, cage })
  expect(rows.map(({ name }) => name)).toEqual(attemptsHere(ATTEMPTS).map(({ name }) => name))
  for (const { answers } of rows) expect(answers).toHaveLength(CAGE_KINDS.length)
  expect(stories.map(({ name }) => name)).toEqual([
    ...STREAM_GAMES.map(({ name }) => name),
    'bystander',
    'provider',
    'outlive-tool',
    'outlive-launcher',
    'main-job',
  ])
  expect(status).toBe(0)
}

describe('a hostile tool', () => {
  let user: SingleUser | undefined
  beforeAll(() => {
    if (process.geteuid?.() === 0) user = new SingleUser()
  })
  afterAll(() => user?.remove())

  test('gets out by none of the ways that are known, and the main job works in the next cage', async () => {
    expectHeld(await chio(['selftest', 'cage', '--json']), { launcherUid: process.geteuid?.() })
  })

  testWhen(
    process.geteuid?.() === 0,
    SKIP_REASONS.needsRoot,
    'gets no further as an ordinary user',
    async () => {
      const ended = await user?.start(['security', 'selftest', 'cage', '--json']).ended
      expectHeld(ended as Ended, { launcherUid: user?.uid, uid: user?.uid })
    },
  )
})
