// Ordinary mistakes of a person: each gets one sentence that names what was given, a code, and nothing half made.
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parseSeconds } from '../../cli/duration.js'
import { chio, documentOf } from '../support/chio.js'

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'chio-mistakes-'))
})
afterAll(() => rmSync(folder, { recursive: true }))

describe('chio init', () => {
  test('below a path that no socket fits under makes nothing, and says by how much', async () => {
    const state = join(folder, 'x'.repeat(100))
    const { status, stderr } = await chio(['init', '--single-user', '--state', state])
    expect(status).toBe(2)
    expect(stderr).toMatch(
      /--state refused: expected a path .* 100 bytes, got \/.*; choose one that is \d+ bytes/,
    )
    expect(existsSync(state)).toBe(false)
  })

  test('below a file is refused by its name, without a stack', async () => {
    const file = join(folder, 'file')
    writeFileSync(file, '')
    const { status, stderr } = await chio(['init', '--single-user', '--state', join(file, 'state')])
    expect(status).toBe(1)
    expect(stderr).toContain(`${file} refused: expected `)
    expect(stderr).not.toMatch(/^\s+at /m)
  })
})

test.each(['10h', '3m', '0s', 'x'])('a time-out of %s is refused with the longest that there is', text => {
  expect(() => parseSeconds(text, '--timeout', 120)).toThrow(
    `--timeout refused: expected a span such as 30s, 5m, 1h or 7d, at most 120s, got "${text}"`,
  )
})

describe('chio capability issue', () => {
  const issue = (url: string, ...more: string[]) =>
    chio(['capability', 'issue', '--credential', 'c', '--url', url, ...more, '--json', '--state', folder])
  test.each<[string, string[], RegExp]>([
    ['http://a.example/', ['--method', 'GET'], /^--url: URL scheme refused: expected https, got http:/],
    ['https://a.example/', ['--method', 'FETCH'], /^--method refused: expected one of .*, got "FETCH"/],
    [
      'https://a.example/',
      ['--method', 'GET', '--header', 'a b'],
      /^--header refused: expected .*, got "a b"/,
    ],
  ])('of %s %j is wrong use, and says so', async (url, more, sentence) => {
    const { status, stderr } = await issue(url, ...more)
    expect(status).toBe(2)
    expect(documentOf(stderr)).toMatchObject({
      code: 'usage',
      sentence: expect.stringMatching(sentence) as string,
    })
  })
})

describe('the next step fits what was refused', () => {
  test.each<[string, string[], string, RegExp]>([
    ['no installation', ['status', '--state', '/nonexistent/chio'], 'installation_missing', /chio init/],
    [
      'no installation to issue for',
      [
        'capability',
        'issue',
        '--credential',
        'c',
        '--url',
        'https://a.example/',
        '--method',
        'GET',
        '--state',
        '/nonexistent/chio',
      ],
      'installation_missing',
      /chio init/,
    ],
    ['no installation to serve', ['up', '--state', '/nonexistent/chio'], 'installation_missing', /chio init/],
    [
      'an export into a folder that cannot be made',
      ['audit', 'verify', '/nonexistent/log'],
      'usage',
      /--help/,
    ],
    [
      'a folder below no folder',
      ['init', '--single-user', '--state', '/dev/null/state'],
      'storage',
      /a path, its permissions/,
    ],
  ])('%s', async (_what, args, code, next) => {
    const { stderr, stdout } = await chio([...args, '--json'])
    expect(stdout).toBe('')
    expect(documentOf(stderr)).toMatchObject({ code, next: expect.stringMatching(next) as string })
    expect(documentOf(stderr)['sentence']).toMatch(/refused: expected .*, got /)
  })
})
