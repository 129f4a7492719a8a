// Owns which of a provider's headers reach the caller: none that carries a credential, sets a cookie or
// belongs to the connection. The rest is sorted and unique, since its digest is signed.
// Source: RFC 9110 §7.6.1 (hop-by-hop); broker wire §5.3, §13.

import type { HeaderField } from '../../protocol/destination.js'
import type { ReceivedField } from './response-head.js'
import { ResponseRefused } from './response-refusal.js'

/** Credentials and cookies of the provider stay between it and the broker. */
const AUTHORITY: readonly string[] = ['authorization', 'proxy-authenticate', 'set-cookie', 'www-authenticate']
/** True for one connection only. */
const HOP_BY_HOP: readonly string[] = [
  'connection',
  'keep-alive',
  'proxy-authentication-info',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]

/** What the wire can name; a field outside it (`x_trace`) has no place in the signed list and is dropped. */
const WIRE_NAME = /^[a-z0-9-]{1,128}$/

/** @throws ResponseRefused when a retained name comes twice. */
export function retainHeaders(fields: readonly ReceivedField[]): HeaderField[] {
  const dropped = new Set([...AUTHORITY, ...HOP_BY_HOP, ...namedByConnection(fields)])
  const retained = fields.filter(({ name }) => !dropped.has(name) && WIRE_NAME.test(name))
  const sorted = retained.map(({ name, value }) => ({ name, value: withoutFinalBlanks(value) })).sort(byName)
  sorted.forEach((field, index) => {
    if (index > 0 && sorted[index - 1]?.name === field.name) throw new ResponseRefused('duplicate_header')
  })
  return sorted
}

function namedByConnection(fields: readonly ReceivedField[]): string[] {
  return fields
    .filter(({ name }) => name === 'connection')
    .flatMap(({ value }) => Buffer.from(value).toString('latin1').split(','))
    .map(option => option.trim().toLowerCase())
}

function withoutFinalBlanks(value: Uint8Array): Uint8Array {
  let end = value.length
  while (end > 0 && (value[end - 1] === 0x20 || value[end - 1] === 0x09)) end--
  return value.subarray(0, end)
}

// Names are ASCII, so that code unit order is byte order.
function byName(left: HeaderField, right: HeaderField): number {
  if (left.name === right.name) return 0
  return left.name < right.name ? -1 : 1
}
