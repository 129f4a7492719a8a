// The control token: what is one, how it comes in, that it is compared whole and searched everywhere, and never shown.
import { chmodSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { inspect } from 'node:util'
import { describe, expect, test } from 'vitest'
import { sealedMemfd } from '../../native/index.js'
import { ControlToken, readControlToken } from '../../sidecar/control-token.js'
import { temporaryFolder } from '../support/temporary-folder.js'

const TOKEN = 'abcDEF123-._~+/=='

describe('a control token', () => {
  test.each(['a', TOKEN, 'x'.repeat(512)])('of its alphabet is one (%#)', token => {
    expect(new ControlToken(token).isPresented(token)).toBe(true)
  })

  test.each(['', 'x'.repeat(513), 'a b', 'a,b', '=a', 'a=b', 'ä', 'a\n', '"a"', 'a\0'])(
    'of another form is refused, and not repeated (%#)',
    token => {
      const refused = (): unknown => new ControlToken(token)
      expect(refused).toThrow(expect.objectContaining({ code: 'invalid_configuration' }))
      expect(refused).toThrow(new RegExp(`got another text of ${token.length}`))
    },
  )

  test('is presented by its exact text alone', () => {
    const token = new ControlToken(TOKEN)
    const others = ['', TOKEN.slice(1), TOKEN.slice(0, -1), `${TOKEN}=`, TOKEN.toLowerCase(), 'x'.repeat(600)]
    expect(others.filter(other => token.isPresented(other))).toEqual([])
  })

  test('is found at every place of a value, and a value that differs in one byte holds none', () => {
    const token = new ControlToken(TOKEN)
    const around = 'ÿ abcDEF123 "'
    for (let at = 0; at <= around.length; at++) {
      const value = `${around.slice(0, at)}${TOKEN}${around.slice(at)}`
      expect(token.standsIn(Buffer.from(value, 'latin1'))).toBe(true)
    }
    for (let at = 0; at < TOKEN.length; at++) {
      const other = `${TOKEN.slice(0, at)}!${TOKEN.slice(at + 1)}`
      expect(token.standsIn(Buffer.from(`${other}${other}`, 'latin1'))).toBe(false)
    }
    expect(token.standsIn(Buffer.alloc(0))).toBe(false)
  })

  test('shows nothing of itself', () => {
    const token = new ControlToken(TOKEN)
    const shown = [String(token), JSON.stringify({ token }), inspect(token, { showHidden: true, depth: 9 })]
    expect(shown.filter(text => text.includes('abcDEF'))).toEqual([])
  })
})

describe('a token file', () => {
  const write = (content: string, mode = 0o600): string => {
    const path = join(temporaryFolder('chio-token-'), 'control.token')
    writeFileSync(path, content)
    chmodSync(path, mode)
    return path
  }

  test.each(['', '\n', '\r\n'])('may end in a line end (%#)', end => {
    expect(readControlToken({ file: write(`${TOKEN}${end}`) }).isPresented(TOKEN)).toBe(true)
  })

  test('holds a token of 512 bytes, and none of 513', () => {
    expect(readControlToken({ file: write(`${'x'.repeat(512)}\n`) }).isPresented('x'.repeat(512))).toBe(true)
    expect(() => readControlToken({ file: write('x'.repeat(513)) })).toThrow('got another text of 513')
    expect(() => readControlToken({ file: write('x'.repeat(515)) })).toThrow('1 to 514 bytes')
    expect(() => readControlToken({ file: write('') })).toThrow('1 to 514 bytes')
  })

  test('is refused where others may read it, or it is a link', () => {
    const code: unknown = expect.objectContaining({ code: 'custody' })
    expect(() => readControlToken({ file: write(TOKEN, 0o640) })).toThrow(code)
    const link = join(temporaryFolder('chio-token-'), 'link')
    symlinkSync(write(TOKEN), link)
    expect(() => readControlToken({ file: link })).toThrow(code)
  })

  test('may be a sealed descriptor, which is closed', () => {
    const fd = sealedMemfd('control-token', Buffer.from(TOKEN))
    expect(readControlToken({ fd }).isPresented(TOKEN)).toBe(true)
    expect(() => readControlToken({ fd })).toThrow(expect.objectContaining({ code: 'custody' }))
  })
})
