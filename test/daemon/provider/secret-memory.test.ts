import { createHash } from 'node:crypto'
import { afterEach, describe, expect, test } from 'vitest'
import { type CompiledChild, startChild } from '../../support/compiled-child.js'
import { occurrencesInMemory } from '../../support/process-memory.js'

/** The same secret on both sides without ever sending it: visible ASCII from a digest. */
const MAKE_SECRET = `
const { createHash } = await import('node:crypto')
const digest = createHash('sha512').update('a secret of this test').digest()
const secret = Buffer.from(new ArrayBuffer(Number(args[0])))
for (let index = 0; index < secret.length; index++) secret[index] = 0x41 + (digest[index % 64] % 26)
digest.fill(0)
`
const USE_AND_WIPE = `
const { SecretScan } = await compiled('daemon/provider/secret-scan')
const { writeProviderRequest } = await compiled('daemon/provider/request-writer')
const placement = args[1] === 'basic' ? { kind: 'basic_authorization', user: 'u' } : { kind: 'bearer_authorization' }
const scan = new SecretScan(secret, placement)
const request = writeProviderRequest({
  body: new Uint8Array(0), headers: [], placement,
  destination: { exactPathAndQuery: '/', explicitPort: 443, method: 'GET', normalizedHost: 'example.test', scheme: 'https' },
  options: {},
}, secret)
scan.find(Buffer.from('an answer without it, but with % and & and \\\\ to look under'))
scan.findInHeaders([{ name: 'x-a', value: Buffer.from('b') }])
say({ before: true })
await new Promise(go => process.stdin.once('data', go))
scan.wipe()
request.fill(0)
secret.fill(0)
say({ wiped: true })
process.stdin.resume()
`

function patternsOf(length: number): Record<string, Uint8Array> {
  const digest = createHash('sha512').update('a secret of this test').digest()
  const secret = Buffer.from(Array.from({ length }, (_, index) => 0x41 + (digest[index % 64]! % 26)))
  const hex = secret.toString('hex')
  return {
    raw: secret,
    'lower case': Buffer.from(secret.toString('latin1').toLowerCase()),
    base64: Buffer.from(secret.toString('base64').replace(/.{0,2}=*$/, '')),
    'UTF-16': Buffer.from(secret.toString('latin1'), 'utf16le'),
    hex: Buffer.from(hex),
    'hex in capitals': Buffer.from(hex.toUpperCase()),
  }
}

describe('the memory of a process that injected a secret and searched an answer for it', () => {
  let child: CompiledChild
  afterEach(() => child.kill())

  // V8 keeps arrays of up to 64 bytes on its own heap: both sides of that bound, and its encodings'.
  test.each([
    [20, 'bearer'],
    [40, 'bearer'],
    [100, 'basic'],
  ])(
    'holds no copy of one of %i bytes (%s) once it was wiped, in any encoding',
    async (length, placement) => {
      child = startChild(MAKE_SECRET + USE_AND_WIPE, [String(length), placement])
      await child.next()
      expect(occurrencesInMemory(child.process.pid!, patternsOf(length))['raw']).toBeGreaterThan(0)
      child.process.stdin!.write('wipe\n')
      await child.next()
      const none = { raw: 0, 'lower case': 0, base64: 0, 'UTF-16': 0, hex: 0, 'hex in capitals': 0 }
      expect(occurrencesInMemory(child.process.pid!, patternsOf(length))).toEqual(none)
    },
  )
})
