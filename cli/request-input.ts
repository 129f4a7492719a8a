// The request of a run as an operator names it: a body from a file or standard input, headers as name:value.
import { readFileSync } from 'node:fs'
import type { HeaderField } from '../protocol/destination.js'
import { BrokerError } from '../protocol/errors.js'
import { MAXIMUM_BODY_BYTES } from '../protocol/limits.js'

/** Reads a body; `-` is standard input, nothing is an empty body. */
export function readBody(source: string | undefined): Uint8Array {
  if (source === undefined) return new Uint8Array(0)
  let body: Uint8Array
  try {
    body = readFileSync(source === '-' ? 0 : source)
  } catch (cause) {
    const code = (cause as NodeJS.ErrnoException).code ?? 'a fault'
    throw new BrokerError('usage', `--body refused: expected a readable file, got ${code}`, { cause })
  }
  if (body.length <= MAXIMUM_BODY_BYTES) return body
  throw new BrokerError(
    'invalid_request',
    `--body refused: expected at most ${MAXIMUM_BODY_BYTES} bytes, got ${body.length}`,
  )
}

/** Reads one `name:value`; the name is lowered, spaces around the value are not part of it (RFC 9110 §5.5). */
export function parseHeader(text: string): HeaderField {
  const colon = text.indexOf(':')
  const name = text.slice(0, Math.max(colon, 0)).trim().toLowerCase()
  if (colon < 1 || name === '') throw new BrokerError('usage', '--header refused: expected name:value')
  return { name, value: Buffer.from(text.slice(colon + 1).trim(), 'latin1') }
}
