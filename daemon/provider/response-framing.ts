// Owns how long a provider's body is: decided once from method, status and header lines, never from the
// end of the stream, since an attacker who cuts the stream would choose the length then.
// Source: RFC 9112 §6.3, RFC 9110 §15 (status codes without content); broker wire §13.

import type { Method } from '../../protocol/destination.js'
import type { ReceivedField } from './response-head.js'
import { ResponseRefused } from './response-refusal.js'

export type Framing =
  | { readonly kind: 'none' }
  | { readonly kind: 'length'; readonly bytes: number }
  | { readonly kind: 'chunked' }

const NONE: Framing = { kind: 'none' }
const REDIRECTS: ReadonlySet<number> = new Set([300, 301, 302, 303, 305, 307, 308])

/** @throws ResponseRefused when the head allows more than one reading, or none. */
export function framingOf(method: Method, status: number, fields: readonly ReceivedField[]): Framing {
  if (REDIRECTS.has(status)) throw new ResponseRefused('redirect', String(status))
  const declared = declaredFraming(fields)
  if (status === 204 || status === 205) return withoutContent(declared)
  // A length here describes what a GET would have answered (RFC 9110 §8.6): no byte of it follows.
  if (status === 304 || method === 'HEAD') return NONE
  if (declared === null) throw new ResponseRefused('no_framing')
  return declared
}

function withoutContent(declared: Framing | null): Framing {
  if (declared !== null && !(declared.kind === 'length' && declared.bytes === 0)) {
    throw new ResponseRefused('body_not_allowed')
  }
  return NONE
}

function declaredFraming(fields: readonly ReceivedField[]): Framing | null {
  const lengths = valuesOf(fields, 'content-length')
  const codings = valuesOf(fields, 'transfer-encoding')
  if (valuesOf(fields, 'content-encoding').length > 0) throw new ResponseRefused('content_encoding')
  if (lengths.length > 0 && codings.length > 0)
    throw new ResponseRefused('content_length_and_transfer_encoding')
  if (lengths.length > 1) throw new ResponseRefused('content_length_twice')
  const [length] = lengths
  if (length !== undefined) return { kind: 'length', bytes: readLength(length) }
  if (codings.length === 0) return null
  if (codings.length > 1 || codings[0]?.toLowerCase() !== 'chunked')
    throw new ResponseRefused('transfer_encoding')
  return { kind: 'chunked' }
}

// Fifteen digits stay exact; the response limit is far below them.
function readLength(text: string): number {
  if (!/^[0-9]{1,15}$/.test(text)) throw new ResponseRefused('content_length')
  return Number(text)
}

function valuesOf(fields: readonly ReceivedField[], name: string): string[] {
  return fields.filter(field => field.name === name).map(field => Buffer.from(field.value).toString('latin1'))
}
