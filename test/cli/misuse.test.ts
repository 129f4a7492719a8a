// Wrong use of any command: one refusal as every other is, in text or as one document, and exit code 2.
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import type { Command } from 'commander'
import { describe, expect, test } from 'vitest'
import { chio as commandLine } from '../../cli/program.js'
import { packageRoot } from '../../native/paths.js'
import { isBrokerError } from '../../protocol/errors.js'
import { chio, documentOf } from '../support/chio.js'

/** The paths of all commands that do something: `['capability', 'issue']`. */
function everyPath(command: Command): string[][] {
  return command.commands.flatMap(child =>
    child.commands.length === 0 ? [[child.name()]] : everyPath(child).map(path => [child.name(), ...path]),
  )
}

async function refusalOf(args: readonly string[]): Promise<string> {
  try {
    await commandLine(true).parseAsync(['node', 'chio', ...args])
    return 'accepted'
  } catch (error) {
    return isBrokerError(error) ? `${error.code}: ${error.message}` : String(error)
  }
}

const PATHS = everyPath(commandLine(false)).filter(([first]) => first !== 'security')

test('every command says so by its name', async () => {
  expect(PATHS.length).toBeGreaterThan(25)
  for (const path of PATHS) {
    const expected = new RegExp(
      `^usage: ${path.join(' ')} refused: expected .*, got (--bogus|a command without it)$`,
    )
    expect(await refusalOf([...path, '--bogus'])).toMatch(expected)
  }
})

describe('what is refused, what was expected, what came', () => {
  test.each<[string[], string]>([
    [['--json'], 'chio refused: expected one of its commands (init, up, '],
    [
      ['capability', '--json'],
      'capability refused: expected one of its commands (issue, revoke, list), got none',
    ],
    [['capability'], 'capability refused: expected one of its commands (issue, revoke, list), got none'],
    [['frob', '--json'], 'chio refused: expected one of its commands, got frob'],
    [['statu'], 'chio refused: expected one of its commands, got statu (Did you mean status?)'],
    [['run', '--json'], 'run refused: expected --capability <grant>, got a command without it'],
    [['run', '--capability'], 'run refused: expected a value after --capability <grant>, got none'],
    [
      ['run', '--capability', 'g', '--exec', 'x'],
      'run refused: expected for --exec <rule> one of allowed, once, got x',
    ],
    [['operation', 'show'], 'operation show refused: expected the argument <id>, got none'],
    [['status', 'extra'], 'status refused: expected 0 arguments, got 1'],
  ])('%j', async (args, sentence) => {
    expect(await refusalOf(args)).toContain(`usage: ${sentence}`)
  })
})

describe('a process', () => {
  test('prints one document with --json, and two lines of text without', async () => {
    const asDocument = await chio(['status', '--jsn', '--json'])
    expect(asDocument).toMatchObject({ status: 2, stdout: '' })
    expect(documentOf(asDocument.stderr)).toMatchObject({
      schema: 'chio.error.v1',
      code: 'usage',
      sentence: 'status refused: expected an option that it has, got --jsn (Did you mean --json?)',
      outcome: 'not_started',
    })
    const asText = await chio(['status', '--jsn'])
    expect(asText).toMatchObject({ status: 2, stdout: '' })
    expect(asText.stderr).toMatch(
      /^chio: status refused: .*\n {6}code usage; outcome not started; next: .*--help.*\n$/,
    )
  })

  test('prints a JSON option that belongs to the tool as nothing of its own', async () => {
    const { status, stderr } = await chio(['run', '--', 'tool', '--json'])
    expect(status).toBe(2)
    expect(stderr).toMatch(/^chio: run refused: expected --capability/)
  })

  test('prints help and version as documents too', async () => {
    const help = await chio(['run', '--help', '--json'])
    expect(help).toMatchObject({ status: 0, stderr: '' })
    expect(documentOf(help.stdout)).toMatchObject({ schema: 'chio.help.v1', command: 'run' })
    const version = await chio(['--version', '--json'])
    expect(documentOf(version.stdout)).toEqual({ schema: 'chio.version.v1', version: '0.1.0' })
  })

  test('of another program prints one too, and one of a daemon in its last line of log', async () => {
    const files = [
      'cli/soak',
      'cli/fuzz',
      'cli/crash',
      'bench/bench',
      'bin/demo',
      'bin/chio-brokerd',
      'bin/chio-kerneld',
    ]
    const told = await Promise.all(
      files.map(file => ended(join(packageRoot(), 'dist', `${file}.js`), ['--bogus', '--json'])),
    )
    for (const { code, stderr } of told) {
      expect(code).toBe(2)
      const last = stderr.trimEnd().split('\n').at(-1) ?? ''
      expect(documentOf(last)).toMatchObject({
        schema: 'chio.error.v1',
        code: 'usage',
        outcome: 'not_started',
      })
    }
  })
})

function ended(file: string, args: readonly string[]): Promise<{ code: unknown; stderr: string }> {
  return new Promise(resolve => {
    execFile(process.execPath, [file, ...args], { env: {} }, (error, _stdout, stderr) =>
      resolve({ code: error?.code ?? 0, stderr }),
    )
  })
}
