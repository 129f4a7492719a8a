// Owns which numeric addresses are public. Knows resolved addresses only, never a host name, and never
// guesses: what is not a plain numeric address is restricted. A connection goes to an address that was
// judged here and to no other.
// Source: broker wire §14; IANA special-purpose address registries (RFC 6890, RFC 8190, RFC 9637).

import { BlockList, isIPv4, isIPv6, SocketAddress } from 'node:net'

type Range = readonly [network: string, prefixBits: number, name: string]

const RESTRICTED_IPV4: readonly Range[] = [
  ['0.0.0.0', 8, 'this network'],
  ['10.0.0.0', 8, 'private'],
  ['100.64.0.0', 10, 'carrier-grade NAT'],
  ['127.0.0.0', 8, 'loopback'],
  ['169.254.0.0', 16, 'link-local'],
  ['172.16.0.0', 12, 'private'],
  ['192.0.0.0', 24, 'protocol assignments'],
  ['192.0.2.0', 24, 'documentation'],
  ['192.88.99.0', 24, '6to4 relay'],
  ['192.168.0.0', 16, 'private'],
  ['198.18.0.0', 15, 'benchmarking'],
  ['198.51.100.0', 24, 'documentation'],
  ['203.0.113.0', 24, 'documentation'],
  ['224.0.0.0', 3, 'multicast or reserved'],
]

/** Inside 2000::/3, the only block that is public at all. */
const RESTRICTED_IPV6: readonly Range[] = [
  ['2001::', 32, 'Teredo'],
  ['2001:2::', 48, 'benchmarking'],
  ['2001:10::', 28, 'ORCHID'],
  ['2001:20::', 28, 'ORCHIDv2'],
  ['2001:db8::', 32, 'documentation'],
  ['2002::', 16, '6to4'],
  ['3fff::', 20, 'documentation'],
]

/** Outside 2000::/3: restricted as a whole; these names only make the refusal readable. */
const OUTSIDE_GLOBAL_IPV6: readonly Range[] = [
  ['::', 128, 'unspecified'],
  ['::1', 128, 'loopback'],
  ['::ffff:0:0', 96, 'IPv4-mapped'],
  ['64:ff9b::', 96, 'NAT64'],
  ['64:ff9b:1::', 48, 'local NAT64'],
  ['fc00::', 7, 'unique local'],
  ['fe80::', 10, 'link-local'],
  ['ff00::', 8, 'multicast'],
]

type Family = 'ipv4' | 'ipv6'

// One list a range: Node's BlockList reads an IPv4-mapped address against IPv4 rules, so families never mix.
const listOf = (family: Family, [network, prefixBits]: Range): BlockList => {
  const list = new BlockList()
  list.addSubnet(network, prefixBits, family)
  return list
}
const named = (family: Family, ranges: readonly Range[]): readonly (readonly [BlockList, string])[] =>
  ranges.map(range => [listOf(family, range), range[2]])

const IPV4 = named('ipv4', RESTRICTED_IPV4)
const IPV6 = named('ipv6', [...RESTRICTED_IPV6, ...OUTSIDE_GLOBAL_IPV6])
const GLOBAL_IPV6 = listOf('ipv6', ['2000::', 3, 'global unicast'])
const LOOPBACK: readonly (readonly [Family, BlockList])[] = [
  ['ipv4', listOf('ipv4', ['127.0.0.0', 8, 'loopback'])],
  ['ipv6', listOf('ipv6', ['::1', 128, 'loopback'])],
]

/**
 * Says why an address must not be connected to.
 * @param address a numeric address as a resolver returned it.
 * @returns the name of the restricted range, or null for a public address.
 */
export function restrictionOf(address: string): string | null {
  const family = familyOf(address)
  if (family === null) return 'not a numeric address'
  const hit = (family === 'ipv4' ? IPV4 : IPV6).find(([list]) => list.check(address, family))
  if (hit !== undefined) return hit[1]
  return family === 'ipv4' || GLOBAL_IPV6.check(address, 'ipv6') ? null : 'outside global unicast'
}

/** Whether a numeric address is loopback: 127.0.0.0/8 or ::1, never the IPv4-mapped form. */
export function isLoopback(address: string): boolean {
  const family = familyOf(address)
  return LOOPBACK.some(([of, list]) => of === family && list.check(address, of))
}

/**
 * The one spelling of a numeric address, as the kernel reports it for a connected peer.
 * @returns null when the text is not a plain numeric address (a zone is not plain).
 */
export function canonicalAddress(address: string): string | null {
  const family = familyOf(address)
  return family === null ? null : new SocketAddress({ address, family }).address
}

function familyOf(address: string): Family | null {
  if (isIPv4(address)) return 'ipv4'
  return isIPv6(address) && !address.includes('%') ? 'ipv6' : null
}
