// Runs vitest itself on an invented project, so that the counts are those of the real runner.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import { SKIP_REASONS } from '../support/skips.js'

const root = fileURLToPath(new URL('../..', import.meta.url))

const PROJECT = {
  'vitest.config.ts': `import { SummaryReporter } from '${root}test/support/summary-reporter.js'
export default { test: { reporters: [new SummaryReporter()], include: ['*.test.ts'] } }`,
  'mixed.test.ts': `import { expect, test } from 'vitest'
test('passes', () => {})
test('passes too', () => {})
test('fails', () => { expect(1).toBe(2) })
test('says why', context => context.skip('${SKIP_REASONS.needsRoot}'))
test.skip('says why in its name (${SKIP_REASONS.vectorsAbsent})', () => {})
test.skip('says nothing', () => {})
test.todo('one day')`,
  'broken.test.ts': "throw new Error('this file does not load')",
  'group.test.ts': `import { beforeAll, describe, test } from 'vitest'
describe('group', () => { beforeAll(() => { throw new Error('no ground') }); test('never runs', () => {}) })`,
}

test('counts passed, failed, broken and unexplained as vitest met them', () => {
  const folder = mkdtempSync(join(tmpdir(), 'chio-summary-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  for (const [path, content] of Object.entries(PROJECT)) writeFileSync(join(folder, path), content)
  const summaryPath = join(folder, 'summary.json')
  const vitest = spawnSync(process.execPath, [join(root, 'node_modules/vitest/vitest.mjs'), 'run'], {
    cwd: folder,
    env: { PATH: process.env['PATH'], CHIO_TEST_SUMMARY: summaryPath },
    encoding: 'utf8',
  })
  const summary = JSON.parse(readFileSync(summaryPath, 'utf8')) as Record<string, unknown>
  const named = ['mixed.test.ts: says nothing', 'mixed.test.ts: one day', 'group.test.ts: group > never runs']
  expect(summary).toMatchObject({ passed: 2, failed: 3, skipped: 5, unhandledErrors: 0 })
  expect(new Set(summary['unexplainedSkips'] as string[])).toEqual(
    new Set(named.map(name => join(folder, name))),
  )
  expect(vitest.stderr).toContain(
    `skipped without a reason of test/support/skips.ts: ${join(folder, 'mixed.test.ts')}`,
  )
  expect(vitest.status).toBe(1)
})
