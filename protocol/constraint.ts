// Owns the constraints that a tool grant puts on the arguments of a call: their documents. Whether arguments keep
// them is judged in constraint-judge.ts. Two constraints are the same where their canonical bytes are.
// Must never: read a type that is not listed here; a constraint that nobody knows would be one that nobody keeps.
// Source: the capability token's constraints, `{type, value?}`.
import {
  array,
  boolean,
  type Infer,
  identifier,
  integer,
  json,
  nullable,
  object,
  oneOf,
  tagged,
  text,
} from './codec.js'
import { MAXIMUM_CONSTRAINT_BYTES, MAXIMUM_CONSTRAINT_VALUES_COUNT, MAXIMUM_INTEGER } from './limits.js'

const word = text({ minBytes: 1, maxBytes: MAXIMUM_CONSTRAINT_BYTES })
const words = array(word, { max: MAXIMUM_CONSTRAINT_VALUES_COUNT })
const count = integer({ min: 0, max: MAXIMUM_INTEGER })
const one = object({ value: word })
const several = object({ value: words })
const counted = object({ value: count })

const ModelConstraint = object({
  allowed_model_ids: words,
  min_safety_tier: nullable(oneOf('low', 'standard', 'high', 'restricted')),
})

/** Every constraint of the wire; snake_case is the wire's. */
export const Constraint = tagged('type', {
  audience_allowlist: several,
  column_denylist: several,
  content_review_tier: object({ value: oneOf('none', 'basic', 'strict') }),
  custom: object({ value: array(word, { min: 2, max: 2 }) }),
  domain_exact: one,
  domain_glob: one,
  governed_intent_required: object({}),
  max_args_size: counted,
  max_length: counted,
  max_rows_returned: counted,
  max_transaction_amount_usd: one,
  memory_store_allowlist: several,
  memory_write_deny_patterns: several,
  minimum_autonomy_tier: object({ value: identifier(64) }),
  minimum_runtime_assurance: object({ value: identifier(64) }),
  model_constraint: object({ value: ModelConstraint }),
  operation_class: object({ value: oneOf('read_only', 'read_write', 'admin') }),
  path_prefix: one,
  regex_match: one,
  require_approval_above: object({ value: object({ threshold_units: count }) }),
  require_cumulative_approval_above: object({ value: json({ maxBytes: MAXIMUM_CONSTRAINT_BYTES }) }),
  require_dual_approval: object({ value: boolean() }),
  seller_exact: one,
  table_allowlist: several,
})
export type Constraint = Infer<typeof Constraint>
export type ConstraintType = Constraint['type']
