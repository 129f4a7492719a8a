// Which hosts are names: an address in any spelling is none.
import { describe, expect, it } from 'vitest'
import { isAddressLiteral } from '../../protocol/destination.js'

describe('hosts that are addresses in disguise', () => {
  it.each([
    ['127.0.0.1', true],
    ['127.1', true],
    ['127.1.', true],
    ['2130706433', true],
    ['0x7f000001', true],
    ['0X7F.0.0.1', true],
    ['0177.0.0.1', true],
    ['1.2.3.0x4', true],
    ['api.example.0', true],
    ['0x', true],
    ['::1', true],
    ['::ffff:169.254.169.254', true],
    ['[::1]', true],
    ['fd00:ec2::254', true],
    ['fe80::1%eth0', true],
    ['example.com', false],
    ['127.0.0.1.nip.io', false],
    ['1password.com', false],
    ['0x7f000001.example', false],
    ['localhost', false],
    ['xn--pypal-4ve.com', false],
    ['x1', false],
    ['0xzz', false],
  ])('%s: %s', (host, expected) => {
    expect(isAddressLiteral(host)).toBe(expected)
  })
})
