// Owns what a codec says of itself: JSON Schema, made of the same parts that read and write, for whoever describes the
// documents to others. Must never be what a document is judged by: the codec is, and refuses more than a schema can say
// (canonical spelling, members tied together, bytes instead of characters).
// Source: JSON Schema draft 2020-12, validation vocabulary.
import type { JsonValue } from './json.js'

export type DocumentSchema = { readonly [keyword: string]: JsonValue }

/** Any value at all. */
export const ANY_SCHEMA: DocumentSchema = {}

/** Text of at most so many bytes has no more characters than that. */
export function textSchema(minimumBytes: number, maximumBytes: number): DocumentSchema {
  return { type: 'string', maxLength: maximumBytes, ...(minimumBytes > 0 && { minLength: 1 }) }
}

export function listSchema(items: DocumentSchema, minimum: number, maximum: number): DocumentSchema {
  return { type: 'array', items, maxItems: maximum, ...(minimum > 0 && { minItems: minimum }) }
}

/** One of several, whichever fits. */
export function eitherSchema(...choices: readonly DocumentSchema[]): DocumentSchema {
  return { anyOf: choices }
}

export interface DescribedMember {
  readonly name: string
  readonly optional: boolean
  readonly schema: DocumentSchema
}

/** Exactly these members. */
export function membersSchema(members: readonly DescribedMember[]): DocumentSchema {
  return {
    type: 'object',
    properties: Object.fromEntries(members.map(({ name, schema }) => [name, schema])),
    required: members.filter(({ optional }) => !optional).map(({ name }) => name),
    additionalProperties: false,
  }
}
