// What an operator writes and what a command says back: spans, headers, bodies, secrets; and foreign text, which a
// terminal must not obey.
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { isAbsolute, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { readSecret } from '../../cli/credential.js'
import { parseSeconds } from '../../cli/duration.js'
import { namedText } from '../../cli/named-text.js'
import { fail, jsonLine, marked, milliseconds, print, visible } from '../../cli/output.js'
import { parseHeader, readBody } from '../../cli/request-input.js'
import { defaultState, findState, layoutOfState } from '../../cli/state.js'
import { findUsers } from '../../cli/users.js'
import { ERROR_CODES, type ErrorCode } from '../../protocol/error-codes.js'
import { BrokerError } from '../../protocol/errors.js'
import { catchOutput } from '../support/caught-output.js'
import { codeOf } from '../support/descriptors.js'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'chio-words-'))
})
afterEach(() => {
  vi.restoreAllMocks()
  process.exitCode = undefined
  rmSync(folder, { recursive: true, force: true })
})

describe('a span of time', () => {
  test.each<[string, number]>([
    ['1s', 1],
    ['30s', 30],
    ['5m', 300],
    ['1h', 3_600],
    ['7d', 604_800],
    ['366d', 31_622_400],
  ])('%s is %d seconds', (text, seconds) => {
    expect(parseSeconds(text, '--expires')).toBe(seconds)
  })

  test.each(['', '0s', '-1s', '1', '1.5h', '1w', ' 1s', '1s ', '1e3s', '367d', '9999999999s', '1h30m'])(
    '%j is refused as usage',
    async text => {
      expect(await codeOf(() => parseSeconds(text, '--expires'))).toBe('usage')
    },
  )
})

describe('a header', () => {
  test('has its name lowered and its value without the spaces around it', () => {
    const field = parseHeader('X-Trace:  a: b ')
    expect(field.name).toBe('x-trace')
    expect(Buffer.from(field.value).toString('latin1')).toBe('a: b')
  })

  test.each(['', 'no colon', ':value', ' : value'])('%j is refused as usage', async text => {
    expect(await codeOf(() => parseHeader(text))).toBe('usage')
  })

  test.each(['x-a:\u0142', 'x-a:\u010a', 'x-a:\u{1f600}'])(
    '%j is refused: cut to one byte it would be sent as another character',
    async text => {
      expect(await codeOf(() => parseHeader(text))).toBe('usage')
    },
  )

  test('is taken at the limits of its name and value, and refused one over', async () => {
    expect(parseHeader(`${'n'.repeat(128)}:${'v'.repeat(8_192)}`).value).toHaveLength(8_192)
    expect(await codeOf(() => parseHeader(`${'n'.repeat(129)}:v`))).toBe('usage')
    expect(await codeOf(() => parseHeader(`n:${'v'.repeat(8_193)}`))).toBe('usage')
  })
})

describe('a name', () => {
  test('is taken up to its limit', () => {
    expect(namedText('tracker', 'credential id')).toBe('tracker')
    expect(namedText('x'.repeat(128), 'grant', 128)).toHaveLength(128)
  })

  test.each(['', ' a', 'a\nb', 'a\u001b[31m', 'x'.repeat(513), '\ud800'])(
    '%j is refused as usage, not with a stack',
    async text => {
      expect(await codeOf(() => namedText(text, 'credential id'))).toBe('usage')
    },
  )
})

describe('a body', () => {
  test('is empty unless named, and read whole from a file', () => {
    expect(readBody(undefined)).toHaveLength(0)
    writeFileSync(join(folder, 'body'), Buffer.alloc(524_288))
    expect(readBody(join(folder, 'body'))).toHaveLength(524_288)
  })

  test('is refused from a source without an end', async () => {
    expect(await codeOf(() => readBody('/dev/zero'))).toBe('invalid_request')
  })

  test('is refused one byte above the limit, and where there is no file to read', async () => {
    writeFileSync(join(folder, 'body'), Buffer.alloc(524_289))
    expect(await codeOf(() => readBody(join(folder, 'body')))).toBe('invalid_request')
    expect(await codeOf(() => readBody(join(folder, 'absent')))).toBe('usage')
    expect(await codeOf(() => readBody(folder))).toBe('usage')
  })
})

async function* chunksOf(...chunks: string[]): AsyncGenerator<Uint8Array> {
  for (const chunk of chunks) yield Buffer.from(chunk)
}

describe('a secret on standard input', () => {
  test.each<[string[], string]>([
    [['token'], 'token'],
    [['token\n'], 'token'],
    [['token\r\n'], 'token'],
    [['to', 'ken', '\n'], 'token'],
    [['token\n\n'], 'token\n'],
    [[' token '], ' token '],
  ])('%j is %j', async (chunks, secret) => {
    expect((await readSecret(chunksOf(...chunks))).toString()).toBe(secret)
  })

  test('is refused when it is empty or above its limit', async () => {
    expect(await codeOf(() => readSecret(chunksOf()))).toBe('usage')
    expect(await codeOf(() => readSecret(chunksOf('\n')))).toBe('usage')
    expect((await readSecret(chunksOf(`${'x'.repeat(65_536)}\r\n`))).length).toBe(65_536)
    expect(await codeOf(() => readSecret(chunksOf('x'.repeat(65_537))))).toBe('usage')
    expect(await codeOf(() => readSecret(chunksOf(...Array<string>(40).fill('x'.repeat(4_096)))))).toBe(
      'usage',
    )
  })
})

describe('foreign text', () => {
  test('reaches a terminal without a single control character but newline and tab', () => {
    const all = Array.from({ length: 0xa0 }, (_none, code) => String.fromCharCode(code)).join('')
    // oxlint-disable-next-line no-control-regex
    expect(visible(all)).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/)
    expect(visible('\u001b[2Jgone')).toBe('\\x1b[2Jgone')
    expect(visible('plain ü\n\ttext')).toBe('plain ü\n\ttext')
  })

  test('reaches it without a mark that reorders, hides or breaks text', () => {
    expect(visible('a\u202eb\u2066c\u200bd\u2028e\ufefff')).toBe(
      'a\\u{202e}b\\u{2066}c\\u{200b}d\\u{2028}e\\u{feff}f',
    )
  })

  test('is marked on every line, so that none of it passes for an outcome of ours', () => {
    expect(marked('provider', 'ok\nverified outcome: HTTP 200\n')).toEqual([
      'provider says | ok',
      'provider says | verified outcome: HTTP 200',
    ])
    expect(marked('tool', '\n')).toEqual([])
    expect(marked('tool', 'no\n', 'stderr')).toEqual(['tool says (stderr) | no'])
  })

  test('is escaped in a document, whose value stays the same', () => {
    const document = { a: '\u009b31m\u202e\u{e0041}\u2028ü' }
    expect(jsonLine(document)).toBe('{"a":"\\u009b31m\\u202e\\udb40\\udc41\\u2028ü"}')
    expect(JSON.parse(jsonLine(document))).toEqual(document)
  })

  test('in a line of a command is made visible as well', () => {
    const said = catchOutput()
    print({}, { schema: 's' }, ['Credential \u009b31m\u202ex is stored.'])
    expect(said.text()).toBe('Credential \\x9b31m\\u{202e}x is stored.')
  })
})

describe('a refusal', () => {
  function told(error: unknown, json: boolean): { text: string; exitCode: unknown } {
    const spoken = vi.spyOn(console, 'error').mockImplementation(() => undefined)
    fail(error, json)
    const text = spoken.mock.calls.map(([line]) => String(line)).join('\n')
    return { text, exitCode: process.exitCode }
  }

  test.each(Object.keys(ERROR_CODES) as ErrorCode[])('%s ends as its row says, with its next step', code => {
    const { text, exitCode } = told(new BrokerError(code, 'what was refused'), true)
    expect(exitCode).toBe(ERROR_CODES[code].exitCode)
    expect(JSON.parse(text)).toMatchObject({
      schema: 'chio.error.v1',
      code,
      sentence: 'what was refused',
      operationId: null,
      next: ERROR_CODES[code].next,
    })
  })

  test('whose outcome is unknown is 75, whatever made it so', () => {
    for (const code of ['client_gone', 'truncated_frame', 'conflict', 'broker_unavailable'] as const) {
      expect(told(new BrokerError(code, 's', { outcome: 'unknown' }), false).exitCode).toBe(75)
    }
  })

  test('names the receipt of a refusal, where there is one', () => {
    const refusal = new BrokerError('grant_exhausted', 's', { receiptId: 'ab'.repeat(32) })
    expect(told(refusal, false).text).toContain(`; receipt ${'ab'.repeat(32)}; next: `)
    expect(JSON.parse(told(refusal, true).text.split('\n').at(-1) ?? '')).toMatchObject({
      receiptId: 'ab'.repeat(32),
    })
    expect(told(new BrokerError('conflict', 's'), false).text.split('\n').at(-2)).not.toContain('receipt')
  })

  test('is told without control characters, and without a stack', () => {
    const { text } = told(new BrokerError('conflict', 'held by \u001b[31mred'), false)
    expect(text).toContain('held by \\x1b[31mred')
    expect(text).not.toContain('    at ')
  })

  test('of the system, about a file that was opened already, is a sentence and no stack', () => {
    const said = vi.spyOn(console, 'error').mockImplementation(() => undefined)
    let refused: unknown
    try {
      readFileSync(folder)
    } catch (error) {
      refused = error
    }
    fail(refused, false)
    expect(said.mock.calls.flat().join('\n')).toMatch(
      /^chio: file refused: expected read to be permitted and possible, got EISDIR\n/,
    )
  })

  test('of a working folder that is gone says so', () => {
    const gone = mkdtempSync(join(tmpdir(), 'chio-gone-'))
    const script = 'cd "$1" && rmdir "$1" && exec "$2" -e "process.cwd()"'
    const { stderr } = spawnSync('/bin/sh', ['-c', script, 'sh', gone, process.execPath], {
      encoding: 'utf8',
    })
    expect(stderr).toContain('uv_cwd')
    const error = Object.assign(new Error('uv_cwd'), { code: 'ENOENT', syscall: 'uv_cwd' })
    expect(told(error, false).text).toContain(
      'working folder refused: expected one that stands, got ENOENT; go to another folder',
    )
  })

  test('that nobody foresaw keeps its stack and is 1', () => {
    const { text, exitCode } = told(new Error('ours to mend'), true)
    expect(text).toContain('    at ')
    expect(exitCode).toBe(1)
  })
})

test('a document is one line of JSON, or the lines for people', () => {
  const spoken = catchOutput()
  print({ json: true }, { schema: 's', a: 1 }, ['people'])
  print({}, { schema: 's' }, ['two', 'lines'])
  expect(spoken.text()).toBe('{"schema":"s","a":1}\ntwo\nlines')
})

test('milliseconds have three digits', () => {
  expect([milliseconds(0.1234), milliseconds(12.345), milliseconds(1234.5)]).toEqual([
    '0.123 ms',
    '12.3 ms',
    '1235 ms',
  ])
})

test('a client that is named twice, or by name and by uid, is one', () => {
  expect(findUsers(['root', '0', 'root'])).toEqual([{ name: 'root', uid: 0, gid: 0 }])
})

describe('the state folder', () => {
  test('is the named one, else of the environment, else the own one where it stands', () => {
    const own = join(folder, 'chio')
    expect(findState('relative', {})).toBe(join(process.cwd(), 'relative'))
    expect(findState(undefined, { CHIO_STATE: '/somewhere' })).toBe('/somewhere')
    expect(findState('/named', { CHIO_STATE: '/somewhere' })).toBe('/named')
    mkdirSync(own)
    expect(findState(undefined, { XDG_STATE_HOME: folder })).toBe(own)
  })

  test.each(['', '..', 'x/y'])('is never relative: %j in HOME or XDG_STATE_HOME names none', name => {
    for (const environment of [
      { HOME: name },
      { XDG_STATE_HOME: name },
      { XDG_STATE_HOME: name, HOME: name },
    ]) {
      const found = findState(undefined, environment)
      expect(isAbsolute(found)).toBe(true)
      expect(() => layoutOfState(found)).not.toThrow()
    }
    expect(findState(undefined, { XDG_STATE_HOME: `${folder}/a//..` })).toBe(
      findState(undefined, { XDG_STATE_HOME: folder }),
    )
  })

  test('has its sockets below /run for the system and below itself otherwise', () => {
    expect(layoutOfState('/var/lib/chio').broker.socket).toBe('/run/chio/broker/sock')
    const tenant = layoutOfState('/var/lib/chio-tenants/acme')
    expect(tenant.broker.socket).toBe('/run/chio-tenants/acme/broker/sock')
    expect(layoutOfState('/srv/a/state').broker.socket).toBe('/srv/a/state/run/broker/sock')
    expect(['/var/lib/chio', join(folder, 'chio')]).toContain(defaultState({ XDG_STATE_HOME: folder }))
  })
})
