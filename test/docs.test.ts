// Holds the documents against the code: links, commands, options, codes, paths, tables, words. The walk of the
// README is run in test/integration/readme-walk.test.ts.
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { peerSees } from '../daemon/refusal-row.js'
import { REFUSALS } from '../daemon/refusals.js'
import { ADMISSION_STATES } from '../protocol/admission-states.js'
import { ATTEMPT_STATES } from '../protocol/attempt-states.js'
import { ERROR_CODES } from '../protocol/error-codes.js'
import { IMPORT_TABLE } from './support/architecture/import-table.js'
import { readTree, topFolder } from './support/architecture/source-tree.js'
import { faultOfCommand } from './support/documents/chio-help.js'
import {
  anchorsOf,
  headingsOf,
  inlineCodeOf,
  linksOf,
  type MarkdownPage,
  readPages,
  tableRows,
  tableUnder,
} from './support/documents/markdown.js'

const root = fileURLToPath(new URL('..', import.meta.url)).replace(/\/$/, '')
const pages = readPages(root)
const files = readTree(root)
const source = files.filter(({ path }) => /\.(ts|mjs|c|h)$/.test(path) && topFolder(path) !== 'test')
const sourceText = source.map(({ text }) => text).join('\n')
const { scripts } = JSON.parse(readFileSync(`${root}/package.json`, 'utf8')) as {
  scripts: Record<string, string>
}
/** Pages that may speak of commands of a later version: the tables of refusals and codes name the next step. */
const GENERATED = ['docs/refusals.md', 'docs/authority-rpc.md', 'docs/kernel-rpc.md']
const written = pages.filter(({ path }) => !GENERATED.includes(path))

function pageAt(path: string): MarkdownPage {
  const page = pages.find(candidate => candidate.path === path)
  if (page === undefined) throw new RangeError(`${path} does not exist`)
  return page
}

describe('links', () => {
  test('every relative link resolves, its anchor too', () => {
    const broken = pages.flatMap(page =>
      linksOf(page)
        .filter(target => !/^[a-z]+:/.test(target) && !resolves(page, target))
        .map(target => `${page.path} links to ${target}`),
    )
    expect(broken).toEqual([])
  })

  function resolves(page: MarkdownPage, target: string): boolean {
    const [path = '', anchor] = target.split('#')
    const file = path === '' ? page.path : normalize(join(dirname(page.path), path))
    if (!existsSync(join(root, file))) return false
    return anchor === undefined || anchorsOf(pageAt(file)).includes(anchor)
  }
})

describe('commands', () => {
  const blocks = pages.flatMap(page => page.fences.filter(({ language }) => language === 'sh'))
  const linesOf = (isMeant: (marker: string) => boolean): string[] =>
    blocks.filter(({ marker }) => isMeant(marker)).flatMap(({ text }) => text.trim().split('\n'))
  const lines = linesOf(marker => !marker.startsWith('file:'))

  test('every line of a shell block is a command that exists', () => {
    const mentioned = written.flatMap(inlineCodeOf).filter(code => /^(npx )?chio( |$)/.test(code))
    const commands = [...lines, ...mentioned].map(line => line.replace(/^npx /, ''))
    const faults = commands.filter(line => line.startsWith('chio')).map(faultOfCommand)
    expect(faults.filter(fault => fault !== undefined)).toEqual([])
    // What a walk runs is proven by it, whatever it calls.
    const unwalked = linesOf(marker => !/^(file|walk):/.test(marker))
    const foreign = unwalked.filter(line => !/^((npx )?chio|npm|openssl|systemctl)( |$)/.test(line))
    expect(foreign).toEqual(['export PATH="$PWD/node_modules/.bin:$PATH"'])
  })

  test('every npm script that is named exists', () => {
    const named = [...lines, ...written.flatMap(inlineCodeOf)].flatMap(line => scriptOf(line) ?? [])
    expect(named.length).toBeGreaterThan(5)
    expect(named.filter(name => scripts[name] === undefined)).toEqual([])
  })

  test('CONTRIBUTING explains every npm script', () => {
    const explained = tableUnder(pageAt('CONTRIBUTING.md'), 'Start').map(([command]) =>
      scriptOf(command ?? '', true),
    )
    expect(new Set(explained)).toEqual(new Set(Object.keys(scripts)))
  })

  function scriptOf(line: string, isCell = false): string | undefined {
    const match = /^npm (?:run )?([\w:]+)/.exec(isCell ? line.replaceAll('`', '') : line)
    return match?.[1]
  }
})

describe('codes and names', () => {
  test('every broker code is one of the table', () => {
    const codes = pages.flatMap(inlineCodeOf).flatMap(code => /^chio\.broker\.(\w+)$/.exec(code)?.[1] ?? [])
    expect(codes.filter(code => !Object.hasOwn(ERROR_CODES, code))).toEqual([])
  })

  test('every snake_case name in the text stands in the source', () => {
    const names = pages.flatMap(page => inlineCodeOf(page).filter(code => /^[a-z]+(_[a-z0-9]+)+$/.test(code)))
    const unknown = [...new Set(names)].filter(name => !new RegExp(`\\b${name}\\b`).test(sourceText))
    expect(unknown).toEqual([])
  })

  test('every path of this tree exists', () => {
    const paths = written.flatMap(page => inlineCodeOf(page).map(code => ({ code, page: page.path })))
    const missing = paths.filter(({ code }) => isPathOfTree(code) && !existsSync(join(root, code)))
    expect(missing).toEqual([])
  })

  /** What a run makes and no clone holds: the folders that git ignores. */
  const madeByRuns = new Set(readFileSync(join(root, '.gitignore'), 'latin1').split('\n'))

  /** A folder with a row may be named before it has files; placeholders and patterns are no paths. */
  function isPathOfTree(code: string): boolean {
    const isFolderWithRow = /^\w+\/$/.test(code) && IMPORT_TABLE[code.slice(0, -1)] !== undefined
    const isPath = /^\.?[\w-]+\/[\w./-]*$/.test(code)
    const first = code.split('/')[0] ?? ''
    const isOurs = IMPORT_TABLE[first] !== undefined || ['docs', 'scripts', '.ci'].includes(first)
    return isPath && isOurs && !isFolderWithRow && !madeByRuns.has(code)
  }

  test('the exit codes of the README are those of the table', () => {
    const listed = tableUnder(pageAt('README.md'), 'Exit codes').map(([code]) => Number(code))
    const used = new Set([0, ...Object.values(ERROR_CODES).map(({ exitCode }) => exitCode)])
    expect(listed).toEqual([...used].sort((a, b) => a - b))
  })
})

describe('docs/fd8.md', () => {
  const page = pageAt('docs/fd8.md')

  test('names every code that a tool can be answered with, and no other', () => {
    const rows = Object.values(REFUSALS)
    const heard = (['consumption', 'dispatched'] as const).flatMap(moment =>
      rows.filter(row => row.when.includes(moment as never)).map(row => peerSees(row, moment)),
    )
    const codes = heard.flatMap(text => /`chio\.broker\.(\w+)`/.exec(text)?.[1] ?? [])
    const named = inlineCodeOf(page).flatMap(code => /^chio\.broker\.(\w+)$/.exec(code)?.[1] ?? [])
    expect([...new Set(named)].sort()).toEqual([...new Set(codes)].sort())
  })

  test('gives the exit codes of chio-exec', () => {
    const header = readFileSync(`${root}/native/chio-exec/chio-exec.h`, 'utf8')
    const codes = [...header.matchAll(/EXIT_\w+ = (\d+)/g)].map(match => match[1] ?? '')
    const sentence = /Its exit codes.*$/m.exec(page.prose)?.[0] ?? ''
    expect([...sentence.matchAll(/\b(\d+) /g)].map(match => match[1])).toEqual(codes)
  })
})

describe('CONTRIBUTING', () => {
  test('shows the import table that is enforced', () => {
    const lines = pageAt('CONTRIBUTING.md').prose.split('\n')
    const head = lines.findIndex(line => line.startsWith('| may import |'))
    const columns = (lines[head] ?? '')
      .split('|')
      .slice(2, -1)
      .map(cell => cell.trim())
    const end = lines.indexOf('', head)
    const shown = tableRows(lines.slice(head, end)).map(([name, ...cells]) => [
      name,
      columns.filter((_column, index) => cells[index] === 'x'),
    ])
    expect(Object.fromEntries(shown)).toEqual(
      Object.fromEntries(Object.entries(IMPORT_TABLE).map(([name, allowed]) => [name, [...allowed]])),
    )
  })
})

describe('decisions', () => {
  const decisions = pages.filter(({ path }) => /^docs\/decisions\/\d/.test(path))

  test('are numbered without a gap and listed', () => {
    const numbers = decisions.map(({ path }) => Number(path.slice('docs/decisions/'.length).slice(0, 4)))
    expect(numbers.sort((a, b) => a - b)).toEqual(numbers.map((_number, index) => index + 1))
    const listed = linksOf(pageAt('docs/decisions/README.md')).map(target => `docs/decisions/${target}`)
    expect(listed.sort()).toEqual(decisions.map(({ path }) => path).sort())
  })

  test.each(decisions.map(page => [page.path, page] as const))('%s says all four things', (_path, page) => {
    const [title, ...sections] = headingsOf(page)
    expect(title).toMatch(/^\d{4} \S/)
    expect(sections).toEqual(['Context', 'Choice', 'Rivals', 'What would change our mind'])
  })
})

describe('glossary', () => {
  const page = pageAt('docs/glossary.md')
  const rows = tableRows(page.prose.split('\n'))
  const terms = rows.map(([term]) => (term ?? '').replaceAll('`', ''))

  test('has the words that are fixed, and says something of each', () => {
    const fixed =
      'reserve start claim prepare acknowledge consume reconcile pin fence epoch original receipt journal'
    expect(fixed.split(' ').filter(word => !terms.includes(word))).toEqual([])
    expect(rows.filter(([, meaning]) => (meaning ?? '').length < 10)).toEqual([])
  })

  test('has no word that the code does not use', () => {
    const spoken = `${sourceText}\n${written
      .filter(({ path }) => path !== page.path)
      .map(({ prose }) => prose)
      .join('\n')}`
    const flat = spoken.toLowerCase().replace(/[\s_*/-]+/g, ' ')
    const unused = terms.filter(term => !flat.includes(term.toLowerCase().replace(/[_-]/g, ' ')))
    expect(unused).toEqual([])
  })

  test('has every state of an attempt, and states of operations that exist', () => {
    const states = (heading: string): string[] =>
      tableUnder(page, heading).map(([state]) => (state ?? '').replaceAll('`', ''))
    expect(states('States of an attempt').sort()).toEqual([...ATTEMPT_STATES].sort())
    const known: readonly string[] = ADMISSION_STATES
    expect(states('States of a brokered operation').filter(state => !known.includes(state))).toEqual([])
  })
})
