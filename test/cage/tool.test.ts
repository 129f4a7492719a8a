/**
 * What an operator names, as one exec; and what a tool says, as safe text.
 */
import { chmodSync, existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { escapeForTerminal } from '../../cage/stdio.js'
import { resolveTool } from '../../cage/tool.js'
import { openFolder, runCaged } from '../support/cage.js'

const folder = openFolder()
afterAll(() => folder.remove())

function script(name: string, content: string, mode = 0o700): string {
  const path = join(folder.path, name)
  writeFileSync(path, content)
  chmodSync(path, mode)
  return path
}

function thrownBy(action: () => unknown): unknown {
  try {
    return action()
  } catch (error) {
    return error
  }
}

/** Refused as the tool that it is, and never as a fault of the machine. */
function expectRefusal(command: string, words: readonly string[]): void {
  const refusal = thrownBy(() => resolveTool(command))
  expect(refusal).toMatchObject({ code: 'tool_refused', outcome: 'not_started' })
  for (const word of words) expect(String(refusal)).toContain(word)
  expect(String(refusal)).not.toContain('doctor')
}

describe('a tool', () => {
  test('is found by its name below /usr, whatever PATH says', () => {
    expect(resolveTool('true', ['x']).tool).toEqual({ path: '/usr/bin/true', argv: ['/usr/bin/true', 'x'] })
  })

  test('that is a script is run by its interpreter, and given beside it', () => {
    const at = '/run/chio-cage/tool/plain.py'
    expect(resolveTool(script('plain.py', '#!/usr/bin/python3 -I\nprint(1)'), ['a'])).toEqual({
      tool: { path: '/usr/bin/python3', argv: ['/usr/bin/python3', '-I', at, 'a'] },
      files: [{ source: join(folder.path, 'plain.py'), at }],
      profile: 'python',
    })
  })

  test('that names env is run by the program that env would find', () => {
    const { tool, profile } = resolveTool(script('env.js', '#!/usr/bin/env node\n'))
    expect([tool.path, profile]).toEqual(['/usr/bin/node', 'node'])
  })

  test.each([
    ['#!/usr/bin/env -S python3 -I', 'env with options'],
    ['#!/usr/bin/env A=B python3', 'env with options'],
    ['#!/usr/bin/env no-such-program', 'one below /usr'],
    ['#!/opt/own/python3', 'one below /usr'],
    ['#!python3', 'one below /usr'],
    ['#!/usr/bin/no-such-interpreter', 'none at /usr/bin/no-such-interpreter'],
    ['#!/usr/lib', 'none at /usr/lib'],
    ['#!  ', 'one that names none'],
  ])('that starts with %j is refused', (line, words) => {
    const path = script('odd', `${line}\n`)
    expectRefusal(path, [path, words, 'correct its #! line'])
  })

  test.each<[string, () => string, string[]]>([
    ['is not there', () => join(folder.path, 'absent'), ['no such file', 'correct its path']],
    ['is a directory', () => folder.path, ['a directory', 'the program itself']],
    ['may not be executed', () => script('plain', '#!/bin/sh\n', 0o600), ['chmod +x']],
    ['has no #! line', () => script('bare.sh', 'echo hello\n'), ['neither', 'add a #! line']],
    ['is empty', () => script('empty', ''), ['an empty first line', 'add a #! line']],
  ])('that %s is refused by its path, with what to do', (_what, made, words) => {
    const path = made()
    expectRefusal(path, [path, ...words])
  })

  test('of the working folder is refused by its bare name, with the path to give', () => {
    expect(existsSync('package.json')).toBe(true)
    expectRefusal('package.json', ['a file of the working folder', 'give its path: ./package.json'])
    expectRefusal('no-such-tool', ['none of that name', 'give its path'])
  })

  test('that is a script of root alone runs in the cage with one exec', async () => {
    const path = script('own.py', '#!/usr/bin/env python3\nimport sys\nprint(sys.argv)\n')
    const { stdout } = await runCaged(resolveTool(path, ['a b']))
    expect(stdout).toBe("['/run/chio-cage/tool/own.py', 'a b']\n")
  })
})

describe('what a tool says', () => {
  const shown = (text: string) => escapeForTerminal(Buffer.from(text))

  test('keeps its lines, tabs and letters', () => {
    expect(shown('a\tb\nné 漢 🙂')).toBe('a\tb\nné 漢 🙂')
  })

  test.each([
    ['an escape sequence', '\x1b]0;title\x07', '\\x1b]0;title\\x07'],
    ['a carriage return', 'real\rfake', 'real\\x0dfake'],
    ['an eight-bit control', '\u009b31m', '\\x9b31m'],
    ['text that runs the other way', 'a\u202eb', 'a\\u{202e}b'],
    ['text that is not seen', 'a\u200b\u{e0041}b', 'a\\u{200b}\\u{e0041}b'],
    ['a line separator', 'a\u2028b', 'a\\u{2028}b'],
  ])('shows %s as an escape', (_what, text, expected) => {
    expect(shown(text)).toBe(expected)
  })

  test('shows bytes that are no text as such', () => {
    expect(escapeForTerminal(Uint8Array.of(0x61, 0xff, 0xc3))).toBe('a\ufffd\ufffd')
  })
})
