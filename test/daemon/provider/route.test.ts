import { describe, expect, it } from 'vitest'
import {
  type LocalProviderEntry,
  LocalProviders,
  NO_LOCAL_PROVIDERS,
} from '../../../daemon/provider/local-providers.js'
import { routeTo } from '../../../daemon/provider/route.js'
import type { BrokerDestination } from '../../../protocol/destination.js'
import { testAuthority } from '../../support/certificates.js'

const destination = (normalizedHost: string, explicitPort = 443): BrokerDestination => ({
  exactPathAndQuery: '/',
  explicitPort,
  method: 'GET',
  normalizedHost,
  scheme: 'https',
})
const entry = (over: Partial<LocalProviderEntry> = {}): LocalProviderEntry => ({
  host: 'provider.test',
  port: 8443,
  address: '127.0.0.1',
  caPem: testAuthority().certPem,
  ...over,
})

describe('the way to a destination', () => {
  it('leads to a public name through DNS and public trust', () => {
    expect(routeTo(destination('api.example.com'), NO_LOCAL_PROVIDERS)).toEqual({
      host: 'api.example.com',
      port: 443,
      local: null,
    })
  })

  it.each([
    '127.0.0.1',
    '8.8.8.8',
    '127.1',
    '2130706433',
    '0x7f000001',
    '0177.0.0.1',
    '::1',
    '::ffff:8.8.8.8',
    'fd00:ec2::254',
  ])('refuses %s: an address is no name', host => {
    expect(() => routeTo(destination(host), NO_LOCAL_PROVIDERS)).toThrow(
      expect.objectContaining({ code: 'authorization_denied', outcome: 'not_started' }),
    )
  })

  it('refuses plain http', () => {
    const plain = { ...destination('api.example.com'), scheme: 'http' } as unknown as BrokerDestination
    expect(() => routeTo(plain, NO_LOCAL_PROVIDERS)).toThrow(/destination scheme refused: expected https/)
  })

  it.each([
    ['provider.test', 8443, true],
    ['provider.test', 8444, false],
    ['provider.test', 443, false],
    ['a.provider.test', 8443, false],
    ['provider.test.', 8443, false],
  ])('finds a local provider for %s port %i: %s', (host, port, found) => {
    const local = new LocalProviders([entry()])
    expect(routeTo(destination(host, port), local).local !== null).toBe(found)
  })

  it('allows an address as host where exactly it is configured, and on no other port', () => {
    const local = new LocalProviders([entry({ host: '127.0.0.1' })])
    expect(routeTo(destination('127.0.0.1', 8443), local).local?.address).toBe('127.0.0.1')
    expect(() => routeTo(destination('127.0.0.1', 8444), local)).toThrow(/destination host refused/)
  })
})

describe('local providers', () => {
  it('are shown as they are used, addresses in their one spelling', () => {
    const list = new LocalProviders([entry({ address: '0:0:0:0:0:0:0:1' })]).list()
    expect(list.map(({ host, port, address }) => [host, port, address])).toEqual([
      ['provider.test', 8443, '::1'],
    ])
  })

  it.each([
    ['a public address', { address: '8.8.8.8' }, 'localProviders[0].address'],
    ['a private address', { address: '10.0.0.1' }, 'localProviders[0].address'],
    ['a mapped address', { address: '::ffff:127.0.0.1' }, 'localProviders[0].address'],
    ['a name as address', { address: 'localhost' }, 'localProviders[0].address'],
    ['port 0', { port: 0 }, 'localProviders[0].port'],
    ['port 65536', { port: 65_536 }, 'localProviders[0].port'],
    ['half a port', { port: 1.5 }, 'localProviders[0].port'],
    ['an upper-case host', { host: 'Provider.test' }, 'localProviders[0].host'],
    ['a host with a final dot', { host: 'provider.test.' }, 'localProviders[0].host'],
    ['a bracketed host', { host: '[::1]' }, 'localProviders[0].host'],
    ['no CA', { caPem: '' }, 'localProviders[0].caPem'],
    [
      'a CA that is no certificate',
      { caPem: '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----' },
      'localProviders[0].caPem',
    ],
  ])('refuse %s and name the member', (_what, over, member) => {
    expect(() => new LocalProviders([entry(over)])).toThrow(
      expect.objectContaining({
        code: 'invalid_configuration',
        message: expect.stringContaining(member) as string,
      }),
    )
  })

  it('refuse a second entry for the same host and port', () => {
    expect(() => new LocalProviders([entry(), entry({ address: '::1' })])).toThrow(/localProviders\[1\]/)
  })
})
