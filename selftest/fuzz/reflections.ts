// Owns the ways in which a provider may write what it was sent, made with strings and bits: independent of the
// search that has to find them. A text around the secret is encoded with it, so that it stands anywhere in a group.
import type { Random } from './random.js'

export type Reflection = (secret: Buffer, random: Random) => Buffer

const BASE32 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'
const each = (text: string, write: (byte: number) => string): string =>
  [...Buffer.from(text, 'latin1')].map(write).join('')
const hex = (byte: number): string => byte.toString(16).padStart(2, '0')
const percent = (text: string): string => each(text, byte => `%${hex(byte)}`)
const script = (text: string): string => each(text, byte => `\\u00${hex(byte)}`)
const base64 = (text: string): string => Buffer.from(text, 'latin1').toString('base64')
const wrapped = (text: string): string => text.replace(/.{19}/g, '$&\r\n\t')

function base32(text: string): string {
  const bits = each(text, byte => byte.toString(2).padStart(8, '0'))
  return (bits.match(/.{1,5}/g) ?? []).map(group => BASE32[parseInt(group.padEnd(5, '0'), 2)]).join('')
}

/** The secret with 0 to 6 letters at each end, written by `write`. */
function around(write: (text: string) => string): Reflection {
  return (secret, random) => {
    const letters = (): string => 'Bearer'.slice(0, random.below(7))
    return Buffer.from(write(letters() + secret.toString('latin1') + letters()), 'latin1')
  }
}

/** Some of the secret's bytes escaped, each in one of these ways. */
function mixed(ways: readonly ((byte: number) => string)[]): Reflection {
  return (secret, random) => {
    const isSign = (byte: number): boolean => [0x25, 0x26, 0x5c].includes(byte)
    const text = [...secret].map(byte =>
      isSign(byte) || random.once(2) ? random.pick(ways)(byte) : String.fromCharCode(byte),
    )
    return Buffer.from(text.join(''), 'latin1')
  }
}

const ESCAPES = [
  (byte: number) => `%${hex(byte)}`,
  (byte: number) => `\\u00${hex(byte)}`,
  (byte: number) => `\\x${hex(byte)}`,
  (byte: number) => `&#${byte};`,
  (byte: number) => `&#x${hex(byte)};`,
]
const DOUBLED = [
  (byte: number) => `%25${hex(byte)}`,
  (byte: number) => `\\\\u00${hex(byte)}`,
  (byte: number) => `&amp;#${byte};`,
]

export const REFLECTIONS: ReadonlyMap<string, Reflection> = new Map([
  ['raw', around(text => text)],
  ['UTF-16, little endian', (secret: Buffer) => Buffer.from(secret.toString('latin1'), 'utf16le')],
  ['UTF-16, big endian', (secret: Buffer) => Buffer.from(secret.toString('latin1'), 'utf16le').swap16()],
  ['base64', around(base64)],
  ['base64url', around(text => Buffer.from(text, 'latin1').toString('base64url'))],
  ['wrapped base64', around(text => wrapped(base64(text)))],
  ['percent-encoded base64', around(text => encodeURIComponent(base64(text)))],
  ['base64 in JSON', around(text => base64(text).replaceAll('/', '\\/'))],
  ['base32', around(base32)],
  ['base32 in lower case', around(text => base32(text).toLowerCase())],
  ['wrapped base32', around(text => wrapped(base32(text)))],
  ['hex', around(text => each(text, hex))],
  ['hex in upper case', around(text => each(text, hex).toUpperCase())],
  ['wrapped hex', around(text => wrapped(each(text, hex)))],
  ['percent', around(percent)],
  ['percent twice', around(text => encodeURIComponent(percent(text)))],
  ['JSON escapes', around(script)],
  ['JSON escapes in JSON', around(text => JSON.stringify(script(text)))],
  ['HTML references', around(text => each(text, byte => `&#x${hex(byte)};`))],
  ['any mixture of escapes', mixed(ESCAPES)],
  ['any mixture of doubled escapes', mixed(DOUBLED)],
])
