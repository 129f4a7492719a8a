// Owns: the values that stand in several parts of the kernel's configuration: names, keys, lists, schemas.
// Must never: repeat a value in a fault. Source: the members of `chio.kerneld-config.v1`.
import type { JsonValue } from '../protocol/json.js'
import { admitPublicKey, type PublicKey } from '../protocol/keys.js'
import { MAXIMUM_IDENTIFIER_BYTES } from '../protocol/limits.js'
import { converted, text, valueOf } from '../protocol/shape.js'
import { readJsonSchema } from './output/json-schema.js'

const VISIBLE = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/
export const id = text(
  value => VISIBLE.test(value) && value.length <= MAXIMUM_IDENTIFIER_BYTES,
  `1 to ${MAXIMUM_IDENTIFIER_BYTES} characters of visible text without outer spaces`,
)
export const publicKey = converted(
  (hex): PublicKey => admitPublicKey(hex, 'key'),
  error => `a key that is admitted (${error instanceof Error ? error.message : 'refused'})`,
)
export const yesOrNo = valueOf((value): value is boolean => typeof value === 'boolean', 'true or false')

/** The length of a list that may not be empty. */
export const atMost = (what: string, max: number) => ({ min: 1, max, expected: `1 to ${max} ${what}` })

/** Read again where it is used: here only that it is a schema of the subset. */
export const jsonSchema = valueOf(
  (value): value is JsonValue => value === null || isJsonSchema(value),
  'null, or a JSON schema of the subset that docs/receipts.md names',
)

function isJsonSchema(value: JsonValue | undefined): boolean {
  try {
    return value !== undefined && readJsonSchema(value) !== undefined
  } catch {
    return false
  }
}
