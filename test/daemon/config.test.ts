import { chmodSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parseConfig, readConfig } from '../../daemon/config.js'
import { BrokerError } from '../../protocol/errors.js'
import { BrokerWorld } from '../support/broker-world.js'

let world: BrokerWorld
let good: Record<string, unknown>
beforeAll(() => {
  world = new BrokerWorld({ provider: false })
  good = JSON.parse(JSON.stringify(world.config)) as Record<string, unknown>
})
afterAll(() => rmSync(world.folder, { recursive: true, force: true }))

const parse = (value: unknown) => parseConfig(Buffer.from(JSON.stringify(value)))
function refusal(value: unknown): string {
  try {
    parse(value)
  } catch (error) {
    expect(error).toBeInstanceOf(BrokerError)
    expect((error as BrokerError).code).toBe('invalid_configuration')
    return (error as BrokerError).message
  }
  throw new Error('expected a refusal')
}
const SMALL_ORDER = '0100000000000000000000000000000000000000000000000000000000000000'
const nested = (member: string, over: object) => ({
  ...good,
  [member]: { ...(good[member] as object), ...over },
})

describe('the configuration', () => {
  test('is read where every member is in order', () => {
    expect(parse(good).tenantScope).toBe('tenant-a')
  })

  test('is refused without any one of its members, by its name', () => {
    for (const member of Object.keys(good)) {
      const { [member]: _left, ...rest } = good
      expect(refusal(rest)).toContain(`configuration ${member} `)
    }
  })

  test('is refused with an unknown member, at the top and inside', () => {
    expect(refusal({ ...good, surplus: 1 })).toContain('"surplus"')
    expect(refusal(nested('authority', { pid: 1 }))).toContain(
      'configuration authority refused: expected no member "pid"',
    )
  })

  test.each([
    ['clockSkewSeconds', 1, 30],
    ['livenessAgeSeconds', 1, 60],
    ['revocationAgeSeconds', 1, 60],
    ['readTimeoutMs', 1, 30_000],
    ['writeTimeoutMs', 1, 30_000],
    ['providerTimeoutCeilingMs', 1, 120_000],
    ['requestFrameBytes', 16_384, 8_388_608],
    ['responseFrameBytes', 16_384, 33_554_432],
  ])('takes %s at both of its limits and refuses one beyond', (member, minimum, maximum) => {
    expect(parse({ ...good, [member]: minimum })).toBeTruthy()
    expect(parse({ ...good, [member]: maximum })).toBeTruthy()
    for (const value of [minimum - 1, maximum + 1, 1.5, '5', null]) {
      expect(refusal({ ...good, [member]: value })).toBe(
        `configuration ${member} refused: expected a whole number from ${minimum} to ${maximum}`,
      )
    }
  })

  test('refuses a weak key wherever one stands, by the name of its place', () => {
    expect(refusal({ ...good, brokerIdentity: SMALL_ORDER })).toContain('configuration brokerIdentity')
    expect(refusal({ ...good, capabilityIssuer: SMALL_ORDER })).toContain('configuration capabilityIssuer')
    expect(refusal(nested('authority', { publicKey: SMALL_ORDER }))).toContain(
      'configuration authority.publicKey',
    )
    expect(refusal(nested('administrators', { keys: [SMALL_ORDER] }))).toContain('administrators.keys.0')
    const client = { uid: 1, gids: [1], callerPublicKey: SMALL_ORDER }
    expect(refusal({ ...good, clients: [client] })).toContain('clients.0.callerPublicKey')
  })

  test('refuses the overflow uid as a client and as the authority', () => {
    const client = { uid: 65_534, gids: [1], callerPublicKey: null }
    expect(refusal({ ...good, clients: [client] })).toContain('overflow uid')
    expect(refusal(nested('authority', { uid: 65_534 }))).toContain('overflow uid')
  })

  test('refuses a threshold above the keys, a path that is relative or too long, a provider off loopback', () => {
    expect(refusal(nested('administrators', { threshold: 2 }))).toContain('administrators.threshold')
    expect(refusal({ ...good, socketPath: 'run/sock' })).toContain('configuration socketPath')
    expect(refusal({ ...good, socketPath: `/${'x'.repeat(100)}` })).toContain('configuration socketPath')
    const entry = { host: 'a.test', port: 443, address: '10.0.0.1', caPem: 'x' }
    expect(refusal({ ...good, localProviders: [entry] })).toContain('localProviders[0].address')
  })

  test('refuses what is not strict JSON: a second member of one name, a comment, two documents', () => {
    for (const text of ['{"schema":1,"schema":2}', '{} {}', '{/**/}', '\ufeff{}']) {
      expect(() => parseConfig(Buffer.from(text))).toThrow(BrokerError)
    }
  })
})

describe('the configuration file', () => {
  test('is refused where its group may write it, where it is a link, and where it is absent', () => {
    const folder = mkdtempSync(join(tmpdir(), 'chio-config-'))
    try {
      const file = join(folder, 'config.json')
      writeFileSync(file, JSON.stringify(good), { mode: 0o640 })
      expect(readConfig(file).audience).toBe('chio-broker')
      chmodSync(file, 0o660)
      expect(() => readConfig(file)).toThrow(/mode/)
      chmodSync(file, 0o600)
      symlinkSync(file, join(folder, 'link.json'))
      expect(() => readConfig(join(folder, 'link.json'))).toThrow(BrokerError)
      expect(() => readConfig(join(folder, 'none.json'))).toThrow(/ENOENT/)
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  })
})
