// The table of cutpoints as data: every commit of the daemons stands in it, both sides; docs/crash.md shows it.
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { PHASES } from '../../selftest/crash/cutpoint.js'
import { CUTPOINTS, isListed, MOST_IMPORTANT, WRITES_NOTHING } from '../../selftest/crash/cutpoints.js'
import { readTree } from '../support/architecture/source-tree.js'

const root = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '')
const names = CUTPOINTS.map(({ name }) => name)

/** Names of the commits that a folder makes, as its sources have them. */
function commitsIn(folder: string): string[] {
  const sources = readTree(root).filter(({ path }) => path.startsWith(`${folder}/`) && path.endsWith('.ts'))
  const calls = /\(\s*'([a-z_]+)',(?:\s*[\w.]+,)*\s*(?:move|tx) =>/g
  return sources.flatMap(({ text }) => [...text.matchAll(calls)].map(([, name]) => name ?? ''))
}

describe('the table of cutpoints', () => {
  test('names each moment once', () => {
    expect(names).toHaveLength(new Set(names).size)
    expect(MOST_IMPORTANT.filter(name => !names.includes(name))).toEqual([])
  })

  test.each([
    ['broker', [...commitsIn('daemon'), ...commitsIn('store'), 'failed', 'unknown_outcome']],
    ['kernel', [...commitsIn('kernel'), ...commitsIn('store')]],
  ])('has both sides of every commit of the %s', (who, commits) => {
    expect(commits.length).toBeGreaterThan(5)
    const written = commits.filter(commit => !WRITES_NOTHING.includes(commit))
    const sides = written.flatMap(commit => [`${who}.${commit}.before`, `${who}.${commit}.after`])
    expect(sides.filter(side => !names.includes(side))).toEqual([])
  })

  test('holds no name that is reached without a row, but for answers that change nothing', () => {
    expect(isListed('broker.completed.after')).toBe(true)
    expect(isListed('kernel.list.answered')).toBe(true)
    expect(isListed('broker.new_commit.before')).toBe(false)
  })

  test('is the one that docs/crash.md shows', () => {
    const page = readFileSync(`${root}/docs/crash.md`, 'utf8')
    const lines = CUTPOINTS.map(
      ({ name, phase, what }) => `| \`${name}\` | ${what} | ${PHASES[phase].meaning} |`,
    )
    expect(lines.filter(line => !page.includes(line))).toEqual([])
  })
})
