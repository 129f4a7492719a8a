import { mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import {
  digestOfSources,
  filesBelow,
  isUpToDate,
  lookOfOutputs,
  writeStamp,
} from '../../scripts/setup/stamps.mjs'

let root = ''
let stampPath = ''

function isBuilt(circumstances = 'v20'): boolean {
  const sources = digestOfSources(
    root,
    filesBelow(root, ['c', 'absent'], path => path.endsWith('.c')),
    circumstances,
  )
  return isUpToDate(stampPath, sources, lookOfOutputs(root, ['out']))
}

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'chio-stamps-'))
  stampPath = join(root, 'records', 'stamp.json')
  onTestFinished(() => rmSync(root, { recursive: true }))
  mkdirSync(join(root, 'c', 'deep'), { recursive: true })
  for (const path of ['c/a.c', 'c/deep/b.c', 'c/notes.md', 'out']) writeFileSync(join(root, path), path)
  const sources = digestOfSources(root, ['c/a.c', 'c/deep/b.c'], 'v20')
  writeStamp(stampPath, { sources, outputs: lookOfOutputs(root, ['out']) ?? '' })
})

describe('what was built', () => {
  test('stays built when a source is only touched, or something else changes', () => {
    utimesSync(join(root, 'c/a.c'), 1, 1)
    writeFileSync(join(root, 'c/notes.md'), 'new')
    expect(isBuilt()).toBe(true)
  })

  test.each([
    ['a source changes', () => writeFileSync(join(root, 'c/deep/b.c'), 'new')],
    ['a source appears', () => writeFileSync(join(root, 'c/new.c'), '')],
    ['a source goes', () => rmSync(join(root, 'c/a.c'))],
    ['an output goes', () => rmSync(join(root, 'out'))],
    ['something else wrote the output', () => utimesSync(join(root, 'out'), 1, 1)],
    ['the stamp is gone', () => rmSync(stampPath)],
    ['the stamp was cut short', () => writeFileSync(stampPath, '{"sour')],
  ])('is built again when %s', (_what, change) => {
    change()
    expect(isBuilt()).toBe(false)
  })

  test('is built again under another Node', () => {
    expect(isBuilt('v22')).toBe(false)
  })
})
