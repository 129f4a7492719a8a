// Pins come from one file of the operator's; what is not exactly right in it is refused by the member's name.
import { randomBytes } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { parseHostPins } from '../../host/pins.js'
import { isBrokerError } from '../../protocol/errors.js'
import { signingKey } from '../../protocol/keys.js'

const RECEIPT_KEY = signingKey(randomBytes(32)).publicKey
const KERNEL_KEY = signingKey(randomBytes(32)).publicKey
/** The neutral element of the curve: it verifies a signature over anything. */
const WEAK_KEY = `01${'00'.repeat(31)}`

function document(): Record<string, unknown> {
  return {
    schema: 'chio.host-pins.v1',
    brokerReceiptKey: RECEIPT_KEY,
    kernelKey: KERNEL_KEY,
    tenantScope: 'default',
    audience: 'chio-broker',
    adapter: { id: 'https', version: 1 },
    broker: { socketPath: '/run/chio/broker/sock', uid: 998, socketGid: 997 },
    kernel: { socketPath: '/run/chio/kernel/sock', uid: 996, socketGid: null },
    requestFrameBytes: 8 * 1024 * 1024,
    responseFrameBytes: 32 * 1024 * 1024,
  }
}

const bytesOf = (value: unknown): Uint8Array => Buffer.from(JSON.stringify(value))

function refusalOf(bytes: Uint8Array): { code: string; sentence: string } {
  try {
    parseHostPins(bytes)
  } catch (error) {
    if (isBrokerError(error)) return { code: error.code, sentence: error.message }
    throw error
  }
  throw new Error('expected a refusal, got pins')
}

describe('the pins of a host', () => {
  test('give each client its own socket, owner and keys', () => {
    const pins = parseHostPins(bytesOf(document()))
    expect(pins.broker).toMatchObject({
      socketPath: '/run/chio/broker/sock',
      uid: 998,
      socketGid: 997,
      receiptKey: RECEIPT_KEY,
      tenantScope: 'default',
    })
    expect(pins.kernel).toMatchObject({ socketPath: '/run/chio/kernel/sock', uid: 996, socketGid: null })
    expect(pins.kernelKey).toBe(KERNEL_KEY)
    expect(pins.audience).toBe('chio-broker')
  })

  test.each(Object.keys(document()))('are refused without %s', member => {
    const { [member]: _missing, ...rest } = document()
    expect(refusalOf(bytesOf(rest))).toMatchObject({ code: 'invalid_configuration' })
    expect(refusalOf(bytesOf(rest)).sentence).toContain(member)
  })

  test.each<[string, unknown]>([
    ['schema', 'chio.host-pins.v2'],
    ['tenantScope', ''],
    ['tenantScope', 'x'.repeat(513)],
    ['audience', 7],
    ['adapter', { id: 'https', version: 0 }],
    ['adapter', { id: 'https', version: 1, extra: true }],
    ['broker', { socketPath: 'run/sock', uid: 1, socketGid: null }],
    ['broker', { socketPath: `/${'x'.repeat(100)}`, uid: 1, socketGid: null }],
    ['broker', { socketPath: '/run/sock', uid: -1, socketGid: null }],
    ['broker', { socketPath: '/run/sock', uid: 0xffff_ffff, socketGid: null }],
    ['broker', { socketPath: '/run/sock', uid: 1.5, socketGid: null }],
    ['kernel', { socketPath: '/run/sock', uid: 1 }],
    ['kernel', null],
    ['requestFrameBytes', 0],
    ['requestFrameBytes', 8 * 1024 * 1024 + 1],
    ['responseFrameBytes', 32 * 1024 * 1024 + 1],
  ])('are refused by the name of %s when it is %j', (member, value) => {
    const refusal = refusalOf(bytesOf({ ...document(), [member]: value }))
    expect(refusal.code).toBe('invalid_configuration')
    expect(refusal.sentence).toMatch(new RegExp(`^pins\\.json ${member}`))
  })

  test('are refused with a member that nobody knows', () => {
    expect(refusalOf(bytesOf({ ...document(), note: 1 })).code).toBe('invalid_configuration')
  })

  test('are refused with a member twice, whatever its values are', () => {
    const twice = JSON.stringify(document()).replace('{', '{"audience":"chio-broker",')
    expect(refusalOf(Buffer.from(twice)).sentence).toContain('pins.json')
  })

  test.each(['brokerReceiptKey', 'kernelKey'])(
    'are refused by the name of a %s that proves nothing',
    member => {
      expect(refusalOf(bytesOf({ ...document(), [member]: WEAK_KEY }))).toMatchObject({ code: 'weak_key' })
      const upper = refusalOf(bytesOf({ ...document(), [member]: RECEIPT_KEY.toUpperCase() }))
      expect(upper.code).toBe('invalid_key')
      expect(upper.sentence).toContain(member)
    },
  )

  test.each(['', '{', 'null', '[]', '"pins"'])('are refused when the file holds %j', text => {
    expect(['invalid_configuration', 'invalid_request']).toContain(refusalOf(Buffer.from(text)).code)
  })
})
