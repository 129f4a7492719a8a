// The example's command line used wrongly, twice at once, and with a kernel's key that is none: its own words, no stack,
// and nothing written over.
import { mkdirSync, rmSync } from 'node:fs'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { actIn } from '../../examples/review-note/act.js'
import { authorize } from '../../examples/review-note/authorize.js'
import { codeOf } from '../support/executor-world.js'
import { ReviewNote } from '../support/review-note.js'

let world: ReviewNote
beforeAll(async () => {
  world = await ReviewNote.begin()
})
afterAll(() => world.end())

test('without a command it shows its commands, and refuses nothing besides', () => {
  const shown = world.run()
  expect(shown).toMatchObject({ status: 2, stdout: '' })
  expect(shown.stderr).toMatch(/^Usage: review-note /)
  expect(shown.stderr).not.toMatch(/refused/)
})

test('without a command it is a document where one is asked for', () => {
  const shown = world.run('--json')
  expect(shown).toMatchObject({ status: 2, stdout: '' })
  expect(shown.stderr).toMatch(/"code":"usage"/)
})

test('of two texts that are given under one key at once one is kept, with all that rests on it', async () => {
  const [kept, other] = [world.write('kept', 'kept.txt'), world.write('another', 'other.txt')]
  let racing: Promise<string> | undefined
  // The second comes when the first has looked, and has written nothing yet.
  const act = actIn(world.act.place.state, name => {
    if (name === 'review-note.request.before') racing ??= codeOf(authorize(world.act, other, 'raced'))
  })
  await authorize(act, kept, 'raced')
  expect(await racing).toBe('request_binding_mismatch')
  await world.execute('raced')
  expect(await world.report('raced')).toMatchObject({ note: 'kept' })
})

test('a folder in the place of the kernel’s key is refused by its path, and nothing is appended', async () => {
  await world.authorize('key')
  const { kernelPublicKey } = world.act.place.host
  rmSync(kernelPublicKey)
  mkdirSync(kernelPublicKey)
  const refused = world.run('execute', 'key')
  expect(refused).toMatchObject({ status: 1, stdout: '' })
  expect(refused.stderr).toContain(`custody of ${kernelPublicKey} refused: expected a regular file`)
})
