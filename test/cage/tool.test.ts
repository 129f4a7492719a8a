/**
 * What an operator names, as one exec; and what a tool says, as safe text.
 */
import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { escapeForTerminal } from '../../cage/stdio.js'
import { resolveTool } from '../../cage/tool.js'
import { openFolder, runCaged } from '../support/cage.js'

const folder = openFolder()
afterAll(() => folder.remove())

function script(name: string, content: string): string {
  const path = join(folder.path, name)
  writeFileSync(path, content)
  chmodSync(path, 0o700)
  return path
}

describe('a tool', () => {
  test('is found by its name below /usr, whatever PATH says', () => {
    expect(resolveTool('true', ['x']).tool).toEqual({ path: '/usr/bin/true', argv: ['/usr/bin/true', 'x'] })
    expect(() => resolveTool('no-such-tool')).toThrow('expected a program in')
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
    '#!/usr/bin/env -S python3 -I',
    '#!/usr/bin/env A=B python3',
    '#!/opt/own/python3',
    '#!python3',
  ])('that starts with %j is refused', line => {
    expect(() => resolveTool(script('odd', `${line}\n`))).toThrow('cage refused')
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
