// The request of a run as an operator names it: a body from a file or standard input, headers as name:value.
import { closeSync, openSync, readSync } from 'node:fs'
import type { HeaderField } from '../protocol/destination.js'
import { BrokerError } from '../protocol/errors.js'
import {
  MAXIMUM_BODY_BYTES,
  MAXIMUM_HEADER_NAME_BYTES,
  MAXIMUM_HEADER_VALUE_BYTES,
} from '../protocol/limits.js'

/** Reads a body; `-` is standard input, nothing is an empty body. */
export function readBody(source: string | undefined): Uint8Array {
  if (source === undefined) return new Uint8Array(0)
  let body: Uint8Array
  try {
    body = readBounded(source)
  } catch (cause) {
    const code = (cause as NodeJS.ErrnoException).code ?? 'a fault'
    throw new BrokerError('usage', `--body refused: expected a readable file, got ${code}`, { cause })
  }
  if (body.length <= MAXIMUM_BODY_BYTES) return body
  throw new BrokerError(
    'invalid_request',
    `--body refused: expected at most ${MAXIMUM_BODY_BYTES} bytes, got more`,
  )
}

/** At most one byte more than a body may have: a source need not have an end. */
function readBounded(source: string): Uint8Array {
  const descriptor = source === '-' ? 0 : openSync(source, 'r')
  try {
    const buffer = Buffer.alloc(MAXIMUM_BODY_BYTES + 1)
    let length = 0
    while (length < buffer.length) {
      const count = readSync(descriptor, buffer, length, buffer.length - length, null)
      if (count === 0) break
      length += count
    }
    return buffer.subarray(0, length)
  } finally {
    if (descriptor !== 0) closeSync(descriptor)
  }
}

/** Reads one `name:value`; the name is lowered, spaces around the value are not part of it (RFC 9110 §5.5). */
export function parseHeader(text: string): HeaderField {
  const colon = text.indexOf(':')
  const name = text.slice(0, Math.max(colon, 0)).trim().toLowerCase()
  if (colon < 1 || name === '')
    throw new BrokerError('usage', '--header refused: expected name:value, got one without a name or a colon')
  const value = text.slice(colon + 1).trim()
  if (name.length > MAXIMUM_HEADER_NAME_BYTES || value.length > MAXIMUM_HEADER_VALUE_BYTES) {
    throw new BrokerError(
      'usage',
      `--header refused: expected a name of at most ${MAXIMUM_HEADER_NAME_BYTES} bytes and a value of at most ${MAXIMUM_HEADER_VALUE_BYTES}, got ${name.length} and ${value.length}`,
    )
  }
  // A character beyond one byte would be sent as another one.
  if (/[^\u0000-\u00ff]/.test(value)) {
    throw new BrokerError(
      'usage',
      `--header ${name} refused: expected characters of one byte (U+0000 to U+00FF), got others`,
    )
  }
  return { name, value: Buffer.from(value, 'latin1') }
}
