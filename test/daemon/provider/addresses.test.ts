import { describe, expect, it } from 'vitest'
import { canonicalAddress, isLoopback, restrictionOf } from '../../../daemon/provider/addresses.js'

const allow = (address: string): [string, null] => [address, null]
const deny = (address: string, range: string): [string, string] => [address, range]

describe('public addresses', () => {
  it.each([
    allow('1.1.1.1'),
    allow('8.8.8.8'),
    allow('9.255.255.255'),
    deny('0.0.0.0', 'this network'),
    deny('0.255.255.255', 'this network'),
    deny('10.0.0.0', 'private'),
    deny('10.255.255.255', 'private'),
    allow('11.0.0.0'),
    allow('100.63.255.255'),
    deny('100.64.0.0', 'carrier-grade NAT'),
    deny('100.127.255.255', 'carrier-grade NAT'),
    allow('100.128.0.0'),
    allow('126.255.255.255'),
    deny('127.0.0.1', 'loopback'),
    deny('127.255.255.255', 'loopback'),
    allow('128.0.0.0'),
    deny('169.254.169.254', 'link-local'),
    deny('169.254.0.0', 'link-local'),
    allow('169.253.255.255'),
    allow('169.255.0.0'),
    allow('172.15.255.255'),
    deny('172.16.0.0', 'private'),
    deny('172.31.255.255', 'private'),
    allow('172.32.0.0'),
    deny('192.0.0.1', 'protocol assignments'),
    allow('192.0.1.0'),
    deny('192.0.2.1', 'documentation'),
    deny('192.88.99.1', '6to4 relay'),
    deny('192.168.0.1', 'private'),
    allow('192.167.255.255'),
    allow('192.169.0.0'),
    deny('198.18.0.0', 'benchmarking'),
    deny('198.19.255.255', 'benchmarking'),
    allow('198.20.0.0'),
    deny('198.51.100.7', 'documentation'),
    deny('203.0.113.7', 'documentation'),
    allow('223.255.255.255'),
    deny('224.0.0.1', 'multicast or reserved'),
    deny('239.255.255.255', 'multicast or reserved'),
    deny('240.0.0.1', 'multicast or reserved'),
    deny('255.255.255.255', 'multicast or reserved'),
    allow('2606:4700:4700::1111'),
    allow('2a00:1450:4001::200e'),
    allow('2001:4860:4860::8888'),
    deny('::', 'unspecified'),
    deny('::1', 'loopback'),
    deny('0:0:0:0:0:0:0:1', 'loopback'),
    deny('::ffff:8.8.8.8', 'IPv4-mapped'),
    deny('::ffff:169.254.169.254', 'IPv4-mapped'),
    deny('::ffff:a9fe:a9fe', 'IPv4-mapped'),
    deny('::8.8.8.8', 'outside global unicast'),
    deny('64:ff9b::a9fe:a9fe', 'NAT64'),
    deny('64:ff9b::8.8.8.8', 'NAT64'),
    deny('64:ff9b:1::1', 'local NAT64'),
    deny('100::1', 'outside global unicast'),
    deny('1fff:ffff::1', 'outside global unicast'),
    allow('2000::1'),
    deny('2001::1', 'Teredo'),
    deny('2001:0:ffff::1', 'Teredo'),
    deny('2001:2::1', 'benchmarking'),
    deny('2001:10::1', 'ORCHID'),
    deny('2001:1f::1', 'ORCHID'),
    deny('2001:20::1', 'ORCHIDv2'),
    deny('2001:2f::1', 'ORCHIDv2'),
    deny('2001:db8::1', 'documentation'),
    deny('2002:7f00:1::1', '6to4'),
    deny('3fff::1', 'documentation'),
    deny('3fff:fff::1', 'documentation'),
    allow('3ffe::1'),
    deny('4000::1', 'outside global unicast'),
    deny('5f00::1', 'outside global unicast'),
    deny('fc00::1', 'unique local'),
    deny('fd00:ec2::254', 'unique local'),
    deny('fe80::1', 'link-local'),
    deny('febf::1', 'link-local'),
    deny('fec0::1', 'outside global unicast'),
    deny('ff02::1', 'multicast'),
    deny('fe80::1%eth0', 'not a numeric address'),
    deny('2606:4700::1111%eth0', 'not a numeric address'),
    deny('127.1', 'not a numeric address'),
    deny('0x08080808', 'not a numeric address'),
    deny('8.8.8.8 ', 'not a numeric address'),
    deny('08.8.8.8', 'not a numeric address'),
    deny('[2606:4700:4700::1111]', 'not a numeric address'),
    deny('example.com', 'not a numeric address'),
    deny('', 'not a numeric address'),
  ])('judges %s as %s', (address, range) => {
    expect(restrictionOf(address)).toBe(range)
  })
})

describe('loopback', () => {
  it.each([
    ['127.0.0.1', true],
    ['127.255.0.9', true],
    ['::1', true],
    ['0:0::1', true],
    ['::ffff:127.0.0.1', false],
    ['128.0.0.1', false],
    ['::2', false],
    ['0.0.0.0', false],
    ['localhost', false],
  ])('%s: %s', (address, expected) => {
    expect(isLoopback(address)).toBe(expected)
  })
})

describe('the one spelling of an address', () => {
  it.each([
    ['0:0:0:0:0:0:0:1', '::1'],
    ['2001:DB8::0:1', '2001:db8::1'],
    ['127.0.0.1', '127.0.0.1'],
    ['127.1', null],
    ['::1%lo', null],
  ])('%s is %s', (address, expected) => {
    expect(canonicalAddress(address)).toBe(expected)
  })
})
