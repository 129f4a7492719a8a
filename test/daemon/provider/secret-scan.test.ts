import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { SecretScan } from '../../../daemon/provider/secret-scan.js'
import { base64Bytes } from '../../../daemon/provider/secret-encodings.js'
import type { CredentialPlacement } from '../../../protocol/placement.js'
import { fullCount } from '../../support/counts.js'

const TOKEN = 'ghp_A1b2C3d4>E5f6?G7h8~i9'
const BEARER: CredentialPlacement = { kind: 'bearer_authorization' }
const scanOf = (secret = TOKEN, placement: CredentialPlacement = BEARER): SecretScan =>
  new SecretScan(Buffer.from(secret, 'latin1'), placement)
const find = (text: string, secret = TOKEN, placement: CredentialPlacement = BEARER) =>
  scanOf(secret, placement).find(Buffer.from(text, 'latin1'))
const each = (write: (byte: number) => string, text = TOKEN): string =>
  [...Buffer.from(text, 'latin1')].map(write).join('')
const hex = (byte: number): string => byte.toString(16).padStart(2, '0')
const b64 = (text: string): string => Buffer.from(text, 'latin1').toString('base64')
/** RFC 4648 §6, from bits: independent of the reader under test. */
const base32 = (text: string): string => {
  const bits = each(byte => byte.toString(2).padStart(8, '0'), text)
  return (bits.match(/.{1,5}/g) ?? [])
    .map(group => 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'[parseInt(group.padEnd(5, '0'), 2)])
    .join('')
}
const b64url = (text: string): string => Buffer.from(text, 'latin1').toString('base64url')

describe('a reflected credential is found', () => {
  it.each<[string, string, string]>([
    ['raw', TOKEN, 'raw'],
    ['raw inside text', `{"echo":"Bearer ${TOKEN}"}`, 'raw'],
    ['base64 of it alone', b64(TOKEN), 'base64'],
    ['base64 after one byte', b64(`x${TOKEN}`), 'base64'],
    ['base64 after two bytes', b64(`xy${TOKEN}z`), 'base64'],
    ['base64 of "Bearer …"', b64(`Bearer ${TOKEN}`), 'base64'],
    ['base64 of "user:…"', b64(`someone:${TOKEN}`), 'base64'],
    ['base64url of it alone', b64url(TOKEN), 'base64url'],
    ['base64url after one byte', b64url(`x${TOKEN}`), 'base64url'],
    ['base64url after two bytes', b64url(`xy${TOKEN}z`), 'base64url'],
    ['hex in lower case', each(hex), 'hex'],
    ['hex in upper case', each(hex).toUpperCase(), 'hex'],
    ['encodeURIComponent', encodeURIComponent(TOKEN), 'escaped'],
    ['percent, every byte', each(byte => `%${hex(byte)}`), 'escaped'],
    ['percent in upper case', each(byte => `%${hex(byte).toUpperCase()}`), 'escaped'],
    ['\\u escapes', each(byte => `\\u00${hex(byte)}`), 'escaped'],
    ['\\u escapes in upper case', each(byte => `\\u00${hex(byte).toUpperCase()}`), 'escaped'],
    ['\\x escapes', each(byte => `\\x${hex(byte)}`), 'escaped'],
    ['HTML entities', TOKEN.replace('>', '&gt;'), 'escaped'],
    ['decimal references', each(byte => `&#${byte};`), 'escaped'],
    ['hex references', each(byte => `&#x${hex(byte)};`), 'escaped'],
    ['one byte of it escaped', TOKEN.replace('A', '%41'), 'escaped'],
    ['UTF-16, little endian', Buffer.from(TOKEN, 'utf16le').toString('latin1'), 'UTF-16'],
    ['UTF-16, big endian', Buffer.from(TOKEN, 'utf16le').swap16().toString('latin1'), 'UTF-16'],
    ['base64 as UTF-16', Buffer.from(b64(`x${TOKEN}`), 'utf16le').toString('latin1'), 'base64'],
    ['base64 in lines', b64(`some text before ${TOKEN} and after`).replace(/.{20}/g, '$&\r\n '), 'base64'],
    ['base64 under percent', encodeURIComponent(b64(`~~?${TOKEN}`)), 'base64'],
    [
      'base64 under percent in lower case',
      b64(TOKEN).replaceAll('/', '%2f').replaceAll('+', '%2b'),
      'base64',
    ],
    ['base64 in JSON of PHP', b64(`xy${TOKEN}`).replaceAll('/', '\\/'), 'base64'],
    ['base32', base32(TOKEN), 'base32'],
    ['base32 in lower case after four bytes', base32(`wxyz${TOKEN}`).toLowerCase(), 'base32'],
    ['hex in pairs, in lines', each(byte => `${hex(byte)} `).replace(/.{24}/g, '$&\n'), 'hex'],
    ['percent twice', encodeURIComponent(each(byte => `%${hex(byte)}`)), 'escaped'],
    ['percent four times', each(byte => `%252525${hex(byte)}`), 'escaped'],
    ['JSON in JSON', JSON.stringify(each(byte => `\\u00${hex(byte)}`)), 'escaped'],
    ['HTML twice', each(byte => `&amp;#${byte};`), 'escaped'],
    ['HTML twice, by name', TOKEN.replace('>', '&amp;gt;'), 'escaped'],
    ['every escape at once', `${TOKEN.slice(0, 3)}%5f\\u0041&#49;${TOKEN.slice(6)}`, 'escaped'],
  ])('%s', (_what, text, form) => {
    expect(find(`before ${text} after`)).toBe(form)
  })

  it('when it holds the very signs that escapes are made of', () => {
    const awkward = 'a%41b\\u0042&amp;"/c'
    expect(find(awkward, awkward)).toBe('raw')
    expect(find(JSON.stringify(awkward), awkward)).toBe('escaped')
    expect(find(awkward.replaceAll('&', '&amp;'), awkward)).toBe('escaped')
    expect(find(encodeURIComponent(awkward), awkward)).toBe('escaped')
    expect(find(JSON.stringify('a"b/c\\d').replaceAll('/', '\\/'), 'a"b/c\\d')).toBe('escaped')
  })

  it('after a false start of itself', () => {
    expect(find('%61bab%61bac', 'abaabac')).toBe(null)
    expect(find('aba%61baabac', 'abaabac')).toBe('escaped')
    expect(find('abaaba%61bac', 'abaabac')).toBe('escaped')
  })

  it('in a Basic value, however short it is', () => {
    const placement: CredentialPlacement = { kind: 'basic_authorization', user: 'bot' }
    expect(find(`Basic ${b64('bot:abc')}`, 'abc', placement)).toBe('base64')
    expect(find(`Basic ${b64('bot:abc')}`, 'abc')).toBe(null)
  })

  it('in a header value, and in a header name though that is lower case by then', () => {
    const scan = scanOf('TokenInName0')
    const header = (name: string, value: string) => ({ name, value: Buffer.from(value) })
    expect(scan.findInHeaders([header('a', 'b'), header('x', b64('TokenInName0'))])).toBe('base64')
    expect(scan.findInHeaders([header('x-tokeninname0', 'v')])).toBe('lower case')
    expect(scan.findInHeaders([header('x-other', 'v')])).toBe(null)
  })
})

describe('what is not the credential is let through', () => {
  it.each([
    ['nothing', ''],
    ['a part of it', TOKEN.slice(0, -1)],
    ['it in other case', TOKEN.toLowerCase()],
    ['broken escapes', '%4 %zz \\u00 \\u00zz \\q & &# &#; &#x; &#xzz; &#99999999; &unknown; \\'],
    ['it with blanks between', TOKEN.split('').join(' ')],
    ['it in two lines', `${TOKEN.slice(0, 9)}\r\n${TOKEN.slice(9)}`],
    ['base64 of something else', b64('some other text entirely, long enough')],
  ])('%s', (_what, text) => {
    expect(find(text)).toBe(null)
  })
})

describe('the scan', () => {
  const secretText = fc.stringMatching(/^[!-~]{8,60}$/)
  const runs = { numRuns: fullCount(300, 10_000) }

  it('finds base64 of any text that holds the secret, wherever it stands', () => {
    fc.assert(
      fc.property(
        secretText,
        fc.string({ maxLength: 20 }),
        fc.string({ maxLength: 20 }),
        (secret, before, after) => {
          const text = Buffer.concat([Buffer.from(before), Buffer.from(secret), Buffer.from(after)])
          expect(find(text.toString('base64'), secret)).not.toBe(null)
          expect(find(text.toString('base64url'), secret)).not.toBe(null)
        },
      ),
      runs,
    )
  })

  it('finds the secret whichever of its bytes are escaped in whichever way', () => {
    const ways: ((byte: number) => string)[] = [
      byte => `%${hex(byte)}`,
      byte => `\\u00${hex(byte)}`,
      byte => `\\x${hex(byte)}`,
      byte => `&#${byte};`,
      byte => `&#x${hex(byte)};`,
    ]
    const plain = fc.stringMatching(/^[0-9A-Za-z_.~-]{8,40}$/)
    fc.assert(
      fc.property(plain, fc.infiniteStream(fc.nat(9)), (secret, choices) => {
        const text = each(
          byte => ways[choices.next().value as number]?.(byte) ?? String.fromCharCode(byte),
          secret,
        )
        expect(find(`x${text}y`, secret)).not.toBe(null)
      }),
      runs,
    )
  })

  it('finds nothing in text that shares no byte with the secret', () => {
    fc.assert(
      fc.property(
        fc.stringMatching(/^[a-f]{8,40}$/),
        fc.stringMatching(/^[g-zG-Z%\\& ]{0,200}$/),
        (secret, text) => {
          expect(find(text, secret)).toBe(null)
        },
      ),
      runs,
    )
  })

  it('takes time linear in the answer, though secret and answer are made to defeat it', () => {
    const secret = `${'a'.repeat(32_767)}b`
    const hostile = Buffer.from(`%61${'a'.repeat(2_000_000)}`)
    // Processor time: the machine may be busy with others.
    const before = process.cpuUsage()
    expect(scanOf(secret).find(hostile)).toBe(null)
    expect(process.cpuUsage(before).user / 1_000).toBeLessThan(2_000)
  })

  it('holds nothing of the secret after the wipe, and wipes no byte of the caller', () => {
    const secret = Buffer.from(TOKEN)
    const scan = new SecretScan(secret, { kind: 'basic_authorization', user: 'u' })
    scan.wipe()
    expect(scan.find(Buffer.from(TOKEN))).toBe(null)
    expect(secret.toString()).toBe(TOKEN)
  })

  it('refuses an empty secret', () => {
    expect(() => scanOf('')).toThrow(RangeError)
  })
})

describe('base64 from bytes to bytes', () => {
  it('equals that of Node for every length', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 70 }), raw => {
        expect(Buffer.from(base64Bytes(raw)).toString('latin1')).toBe(Buffer.from(raw).toString('base64'))
      }),
      { numRuns: fullCount(300, 5_000) },
    )
  })
})
