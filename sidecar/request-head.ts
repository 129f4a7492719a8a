// Owns what is read from the head of a request: its fields as they came, one by one.
// Must never: join fields of one name, drop any, or read them through a map: what was sent twice was sent twice.
// Source: RFC 9110 section 5.3; node:http `message.rawHeaders`.
import type { IncomingMessage } from 'node:http'
import { CONTROL_TOKEN_FORM } from '../protocol/caller-http.js'
import type { ControlToken } from './control-token.js'
import { HEADER_SCAN_BUDGET_BYTES } from './http-limits.js'

export interface Field {
  /** In lower case. */
  readonly name: string
  /** One character a byte. */
  readonly value: string
}

export function fieldsOf({ rawHeaders }: Pick<IncomingMessage, 'rawHeaders'>): Field[] {
  const fields: Field[] = []
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    fields.push({ name: (rawHeaders[at] as string).toLowerCase(), value: rawHeaders[at + 1] as string })
  }
  return fields
}

export function valuesOf(fields: readonly Field[], name: string): string[] {
  return fields.filter(field => field.name === name).map(({ value }) => value)
}

/** Names count again for every value. */
export function isWithinScanBudget(fields: readonly Field[]): boolean {
  const bytes = fields.reduce((sum, { name, value }) => sum + name.length + value.length, 0)
  return bytes <= HEADER_SCAN_BUDGET_BYTES
}

/** Whether the token stands in any field, whatever its name and whatever is around it. */
export function carriesToken(fields: readonly Field[], token: ControlToken | null): boolean {
  if (token === null) return false
  let found = false
  // Every field is searched: where it stood is told by nothing.
  for (const { value } of fields) found = token.standsIn(Buffer.from(value, 'latin1')) || found
  return found
}

const SCHEME = 'bearer '

/** Exactly one Authorization field: `bearer` in any case, one space, the token. Without a token nobody is authorized. */
export function isAuthorized(fields: readonly Field[], token: ControlToken | null): boolean {
  const [credentials, ...more] = valuesOf(fields, 'authorization')
  if (token === null || credentials === undefined || more.length > 0) return false
  const presented = credentials.slice(SCHEME.length)
  const isBearer = credentials.slice(0, SCHEME.length).toLowerCase() === SCHEME
  return isBearer && CONTROL_TOKEN_FORM.test(presented) && token.isPresented(presented)
}
