// Owns: a small subset of JSON Schema, read strictly and judged completely: what it does not know it refuses to read.
// Must never: pass a value over a keyword that it ignores, or repeat a value in what it says.
// Source: JSON Schema draft 2020-12, validation vocabulary; no references, no patterns, no formats.
import { isDeepStrictEqual } from 'node:util'
import { BrokerError } from '../../protocol/errors.js'
import { isList, type JsonValue } from '../../protocol/json.js'

const TYPES = ['array', 'boolean', 'integer', 'null', 'number', 'object', 'string'] as const
type JsonType = (typeof TYPES)[number]
type JsonObject = { readonly [member: string]: JsonValue }

const MAXIMUM_SCHEMA_DEPTH = 16

/** A schema as it is judged; absent keywords ask nothing. */
export interface JsonSchema {
  readonly type?: readonly JsonType[]
  readonly enum?: readonly JsonValue[]
  readonly properties?: ReadonlyMap<string, JsonSchema>
  readonly required?: readonly string[]
  readonly additionalProperties?: boolean
  readonly items?: JsonSchema
  readonly bounds: readonly Bound[]
}

interface Bound {
  readonly keyword: string
  /** What is compared of a value; undefined where the keyword says nothing of it. */
  readonly measure: (value: JsonValue) => number | undefined
  readonly limit: number
  readonly isLeast: boolean
}

const lengthOf = (value: JsonValue): number | undefined =>
  // Characters, not UTF-16 units, as the specification counts them.
  typeof value === 'string' ? Array.from(value).length : undefined
const itemsOf = (value: JsonValue): number | undefined => (isList(value) ? value.length : undefined)
const numberOf = (value: JsonValue): number | undefined => (typeof value === 'number' ? value : undefined)

const BOUNDS: Readonly<Record<string, Pick<Bound, 'isLeast' | 'measure'>>> = {
  maxItems: { isLeast: false, measure: itemsOf },
  maxLength: { isLeast: false, measure: lengthOf },
  maximum: { isLeast: false, measure: numberOf },
  minItems: { isLeast: true, measure: itemsOf },
  minLength: { isLeast: true, measure: lengthOf },
  minimum: { isLeast: true, measure: numberOf },
}

type Keyword = (value: JsonValue, depth: number) => Partial<JsonSchema> | undefined
const KEYWORDS: Readonly<Record<string, Keyword>> = {
  additionalProperties: value => (typeof value === 'boolean' ? { additionalProperties: value } : undefined),
  const: value => ({ enum: [value] }),
  enum: value => (isList(value) && value.length > 0 ? { enum: value } : undefined),
  items: (value, depth) => ({ items: readAt(value, depth + 1) }),
  properties: (value, depth) => (isObject(value) ? { properties: readProperties(value, depth) } : undefined),
  required: value => (isTexts(value) ? { required: value } : undefined),
  type: value => {
    const types = (isList(value) ? value : [value]) as readonly JsonType[]
    return types.length > 0 && types.every(type => TYPES.includes(type)) ? { type: types } : undefined
  },
}

/** @throws BrokerError `invalid_configuration` naming the keyword that is not of the subset. */
export function readJsonSchema(value: JsonValue): JsonSchema {
  return readAt(value, 0)
}

function readAt(value: JsonValue, depth: number): JsonSchema {
  if (depth > MAXIMUM_SCHEMA_DEPTH) refuse(`at most ${MAXIMUM_SCHEMA_DEPTH} levels`)
  if (!isObject(value)) return refuse('an object at every level')
  const schema: { bounds: Bound[] } & Partial<JsonSchema> = { bounds: [] }
  for (const [keyword, given] of Object.entries(value)) {
    const bound = Object.hasOwn(BOUNDS, keyword) ? BOUNDS[keyword] : undefined
    if (bound === undefined) Object.assign(schema, readKeyword(keyword, given, depth))
    else schema.bounds.push({ ...bound, keyword, limit: readLimit(keyword, given) })
  }
  return schema
}

function readKeyword(keyword: string, value: JsonValue, depth: number): Partial<JsonSchema> {
  const read = Object.hasOwn(KEYWORDS, keyword) ? KEYWORDS[keyword] : undefined
  if (read === undefined) return refuse(`a keyword of the subset, got ${JSON.stringify(keyword)}`)
  return read(value, depth) ?? refuse(`a valid ${keyword}`)
}

function readLimit(keyword: string, value: JsonValue): number {
  return typeof value === 'number' ? value : refuse(`a number as ${keyword}`)
}

function readProperties(value: JsonObject, depth: number): ReadonlyMap<string, JsonSchema> {
  return new Map(Object.entries(value).map(([name, schema]) => [name, readAt(schema, depth + 1)]))
}

/** @returns the first place that does not fit, with the keyword; null when everything does. Never a value. */
export function schemaFault(schema: JsonSchema, value: JsonValue, place = 'value'): string | null {
  const { enum: allowed, type } = schema
  if (type !== undefined && !type.some(name => isOfType(name, value))) return `${place}: type`
  if (allowed !== undefined && !allowed.some(one => isDeepStrictEqual(one, value))) return `${place}: enum`
  const exceeded = schema.bounds.find(bound => exceeds(bound, value))
  if (exceeded !== undefined) return `${place}: ${exceeded.keyword}`
  if (isList(value)) return itemFault(schema, value, place)
  return isObject(value) ? memberFault(schema, value, place) : null
}

function exceeds({ isLeast, limit, measure }: Bound, value: JsonValue): boolean {
  const size = measure(value)
  if (size === undefined) return false
  return isLeast ? size < limit : size > limit
}

function itemFault({ items }: JsonSchema, values: readonly JsonValue[], place: string): string | null {
  if (items === undefined) return null
  for (const [index, value] of values.entries()) {
    const fault = schemaFault(items, value, `${place}[${index}]`)
    if (fault !== null) return fault
  }
  return null
}

function memberFault(schema: JsonSchema, value: JsonObject, place: string): string | null {
  const missing = schema.required?.find(name => !Object.hasOwn(value, name))
  if (missing !== undefined) return `${place}.${missing}: required`
  const names = Object.keys(value)
  const isKnown = (name: string): boolean => schema.properties?.has(name) === true
  // The name itself is the provider's, and may be anything.
  if (schema.additionalProperties === false && !names.every(isKnown)) return `${place}: additionalProperties`
  for (const [name, of] of schema.properties ?? []) {
    if (!Object.hasOwn(value, name)) continue
    const fault = schemaFault(of, value[name] as JsonValue, `${place}.${name}`)
    if (fault !== null) return fault
  }
  return null
}

function isOfType(type: JsonType, value: JsonValue): boolean {
  if (type === 'null') return value === null
  if (type === 'array') return isList(value)
  if (type === 'object') return isObject(value)
  return type === 'integer' ? Number.isInteger(value) : typeof value === type
}

function isObject(value: JsonValue): value is JsonObject {
  return typeof value === 'object' && value !== null && !isList(value)
}

function isTexts(value: JsonValue): value is readonly string[] {
  return isList(value) && value.every(one => typeof one === 'string')
}

function refuse(expected: string): never {
  throw new BrokerError('invalid_configuration', `output schema refused: expected ${expected}`)
}
