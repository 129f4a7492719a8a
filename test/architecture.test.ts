// Holds this very tree against the rules of the house. Each rule answers with sentences; none may be left.
// That each rule can fail is proved on small invented trees in test/support/architecture.test.ts.
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import * as code from './support/architecture/code-rules.js'
import { checkImportTable } from './support/architecture/import-table.js'
import { checkDoors, type DoorManifest } from './support/architecture/manifest-rules.js'
import { moduleFacts } from './support/architecture/module-facts.js'
import { isGovernedTypeScript, readTree } from './support/architecture/source-tree.js'
import * as text from './support/architecture/text-rules.js'

const root = fileURLToPath(new URL('..', import.meta.url)).replace(/\/$/, '')
const files = readTree(root)
const modules = files.filter(({ path }) => isGovernedTypeScript(path)).map(moduleFacts)
const manifest = JSON.parse(readFileSync(`${root}/package.json`, 'utf8')) as code.PackageManifest &
  DoorManifest

describe('the house', () => {
  test('is read at all', () => {
    expect(modules.length).toBeGreaterThan(50)
    expect(files.map(({ path }) => path)).toContain('package-lock.json')
  })

  test.each([
    ['imports go only where the table allows', () => checkImportTable(modules)],
    ['no files import each other in a circle', () => code.checkCycles(modules)],
    ['processes start only where they may', () => code.checkChildProcess(modules)],
    ['only store/ opens SQLite', () => code.checkSqlite(modules)],
    ['clocks are read in one file and handed in', () => code.checkClocks(modules)],
    ['only command lines, examples and tests print', () => code.checkConsole(modules)],
    ['one folder of kernel/ holds SQL', () => code.checkKernelSql(modules)],
    ['what ships imports only declared packages', () => code.checkPackages(modules, manifest)],
    [
      'programs and exports have their sources',
      () =>
        checkDoors(
          manifest,
          files.map(({ path }) => path),
        ),
    ],
    ['names say what a file owns', () => text.checkNames(files)],
    ['no file is longer than its budget', () => text.checkFileLength(files)],
    ['no C function is longer than its budget', () => text.checkCFunctionLength(files)],
    ['no file switches a size budget off', () => text.checkBudgetExemptions(files)],
    ['every source file opens with what it owns', () => text.checkOpeningComment(files)],
    ['every refusal says what it got', () => text.checkRefusalSentences(files)],
    ['no committed file knows one machine', () => text.checkMachineTraces(files)],
    ['the lock file names no registry', () => text.checkLockFile(files)],
  ])('%s', (_promise, findings) => {
    expect(findings().join('\n')).toBe('')
  })

  test('keeps the size budgets of functions in the linter', () => {
    const { rules } = JSON.parse(readFileSync(`${root}/.oxlintrc.json`, 'utf8')) as {
      rules: Record<string, unknown>
    }
    expect(rules).toMatchObject({
      'max-lines': ['error', { max: 300 }],
      'max-lines-per-function': ['error', { max: 40 }],
      'max-params': ['error', { max: 4 }],
      'max-depth': ['error', { max: 3 }],
    })
  })
})
