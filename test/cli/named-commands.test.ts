// Every command that a next step, a sentence or a comment names is one that this command line has.
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { ERROR_CODES } from '../../protocol/error-codes.js'
import { readTree, topFolder } from '../support/architecture/source-tree.js'
import { faultOfCommand } from '../support/documents/chio-help.js'

const root = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '')
const sources = readTree(root).filter(
  ({ path }) => /\.(ts|mjs|c|h)$/.test(path) && topFolder(path) !== 'test',
)

/** `chio` with the words and options behind it; not a name such as "chio trial CA". */
function commandsIn(text: string): string[] {
  const mentions = text.match(/(?<![\w.'/=-])chio(?: --?[a-z][\w-]*| [a-z][a-z-]*(?![\w/(]))+(?! CA\b)/g)
  return mentions ?? []
}

describe('a command that is named', () => {
  test('is found where it stands', () => {
    expect(commandsIn('read it: chio operation show')).toEqual(['chio operation show'])
    expect(commandsIn('`chio init --client USER`')).toEqual(['chio init --client'])
    expect(commandsIn("the 'chio trial CA' and chio-brokerd")).toEqual([])
    expect(faultOfCommand('chio operation forget')).toContain('has no forget')
    expect(faultOfCommand('chio doctor --nothing')).toContain('takes no --nothing')
  })

  test.each(Object.entries(ERROR_CODES))('after %s exists', (_code, { next }) => {
    expect(commandsIn(next).map(faultOfCommand).filter(Boolean)).toEqual([])
  })

  test('in any source exists', () => {
    const named = sources.flatMap(({ path, text }) => commandsIn(text).map(line => ({ path, line })))
    expect(named.length).toBeGreaterThan(30)
    const faults = named.flatMap(({ path, line }) => {
      const fault = faultOfCommand(line)
      return fault === undefined ? [] : [`${path}: ${fault}`]
    })
    expect(faults).toEqual([])
  })
})
