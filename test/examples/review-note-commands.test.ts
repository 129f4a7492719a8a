// The example's command line used wrongly, and with a kernel's key that is none: its own words, and no stack.
import { mkdirSync, rmSync } from 'node:fs'
import { afterAll, beforeAll, expect, test } from 'vitest'
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

test('a folder in the place of the kernel’s key is refused by its path, and nothing is appended', async () => {
  await world.authorize('key')
  const { kernelPublicKey } = world.act.place.host
  rmSync(kernelPublicKey)
  mkdirSync(kernelPublicKey)
  const refused = world.run('execute', 'key')
  expect(refused).toMatchObject({ status: 1, stdout: '' })
  expect(refused.stderr).toContain(`custody of ${kernelPublicKey} refused: expected a regular file`)
})
