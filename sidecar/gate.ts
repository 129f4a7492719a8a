// Owns the judgement of a request by its head alone, before one byte of its body is read: who may ask what, from where,
// in which form, and how much.
// Must never: look into a body, or ask the kernel. Its order is the order in which a request is refused.
// Source: the control gate and the containment of control credentials; RFC 9110 sections 7.2, 8.3, 8.4 and 8.6.
import type { IncomingMessage } from 'node:http'
import type { ControlToken } from './control-token.js'
import { MAXIMUM_BODY_BYTES } from './http-limits.js'
import type { RefusalName } from './refusals.js'
import {
  carriesToken,
  type Field,
  fieldsOf,
  isAuthorized,
  isWithinScanBudget,
  valuesOf,
} from './request-head.js'

/** What is asked: a control route, one that anybody may ask who can connect, or none of ours. */
export type Access = 'control' | 'open' | 'unknown'

export interface GateSettings {
  /** `host:port` of a loopback address; null over a Unix socket, where no page and no name leads. */
  readonly authority: string | null
  readonly token: ControlToken | null
}

/** @returns the first refusal; undefined where the body may be read. */
export function judgeHead(
  message: IncomingMessage,
  access: Access,
  { authority, token }: GateSettings,
): RefusalName | undefined {
  const fields = fieldsOf(message)
  if (!isWithinScanBudget(fields)) return 'headersTooLarge'
  // Before the gate: a page that a browser was led to here learns not even whether its token is right.
  if (authority !== null && !isOnly(valuesOf(fields, 'host'), authority)) return 'host'
  if (valuesOf(fields, 'origin').length > 0) return 'origin'
  if (access === 'control' && !isAuthorized(fields, token)) return 'forbidden'
  if (access !== 'control' && carriesToken(fields, token)) return 'wrongRoute'
  if (access === 'unknown') return 'unknownRoute'
  return message.method === 'POST' ? judgeBody(fields) : undefined
}

const JSON_TYPE = /^application\/json(?:[ \t]*;[ \t]*charset="?utf-8"?)?$/i

function judgeBody(fields: readonly Field[]): RefusalName | undefined {
  const types = valuesOf(fields, 'content-type')
  const isJson = types.length === 1 && JSON_TYPE.test(types[0] as string)
  if (!isJson || valuesOf(fields, 'content-encoding').length > 0) return 'type'
  if (valuesOf(fields, 'expect').some(expected => expected.toLowerCase() !== '100-continue'))
    return 'malformed'
  return valuesOf(fields, 'content-length').some(length => Number(length) > MAXIMUM_BODY_BYTES)
    ? 'tooLarge'
    : undefined
}

function isOnly(values: readonly string[], expected: string): boolean {
  return values.length === 1 && values[0]?.toLowerCase() === expected
}
