// Owns SHA-256 and lower-case hex. Must never accept upper case: a digest has one spelling, so that text
// comparison is comparison.
// Source: FIPS 180-4; domain separation = ASCII domain, one zero byte, then the canonical bytes.

import { createHash } from 'node:crypto'

const HEX = /^(?:[0-9a-f]{2})*$/
const DOMAIN = /^[a-z0-9][a-z0-9.-]*$/
const ZERO = Uint8Array.of(0)

export function sha256(...parts: readonly Uint8Array[]): Uint8Array {
  const hash = createHash('sha256')
  for (const part of parts) hash.update(part)
  return new Uint8Array(hash.digest())
}

export function sha256Hex(...parts: readonly Uint8Array[]): string {
  const hash = createHash('sha256')
  for (const part of parts) hash.update(part)
  return hash.digest('hex')
}

/** SHA-256 over domain, 0x00, bytes. The domain is given without its final NUL. */
export function domainDigestHex(domain: string, ...parts: readonly Uint8Array[]): string {
  return sha256Hex(domainPrefix(domain), ...parts)
}

/** The ASCII domain with its final zero byte. */
export function domainPrefix(domain: string): Uint8Array {
  assertDomain(domain)
  return Buffer.concat([Buffer.from(domain, 'latin1'), ZERO])
}

/** A domain that ends in a NUL of its own would be separated by two, and match nothing. */
export function assertDomain(domain: string): void {
  if (!DOMAIN.test(domain)) {
    throw new RangeError(`"domain" expected lower-case letters, digits, dots and hyphens without a NUL`)
  }
}

export function toHex(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('hex')
}

export function fromHex(hex: string): Uint8Array {
  if (typeof hex !== 'string') throw new TypeError(`"hex" expected a string, got ${typeof hex}`)
  if (!HEX.test(hex)) {
    throw new RangeError(`"hex" expected pairs of lower-case hex digits, got ${hex.length} other characters`)
  }
  return new Uint8Array(Buffer.from(hex, 'hex'))
}

/**
 * Bytes that a wipe really reaches. V8 keeps an array of up to 64 bytes on its own heap, where the collector moves
 * it and reading its `buffer` copies it: either leaves the bytes behind where nobody wipes them.
 */
export function wipeableBytes(length: number): Uint8Array {
  return new Uint8Array(new ArrayBuffer(length))
}

/** Overwrites bytes that must not outlive their use. Copies that the engine made are out of reach. */
export function wipe(bytes: Uint8Array): void {
  bytes.fill(0)
}
