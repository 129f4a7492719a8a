// Owns whether the arguments of a call keep a grant's constraints: a table, closed by default. What cannot be judged
// from the arguments alone, or not by this program, is never kept, so that its grant allows nothing.
// Must never: compile a pattern of the token (a pattern can be made to run for hours), or take absence for agreement.
// Source: the capability token's matching rules; grants are chosen only where every constraint is kept.
import { hostOf, isPathLike, isPathUnder, matchesGlob, normalHost, textLeaves } from './argument-text.js'
import { canonicalBytes } from './canonical.js'
import type { Constraint, ConstraintType } from './constraint.js'
import { isList } from './json.js'
import type { JsonValue } from './json.js'

type ValueOf<T extends ConstraintType> =
  Extract<Constraint, { readonly type: T }> extends { readonly value: infer V } ? V : undefined
type Judge<V> = (value: V, parameters: JsonValue) => boolean

/** Needs an intent, an approval, a model, a store or an output, none of which the arguments are. */
const unjudged = (): boolean => false

const JUDGES: { readonly [T in ConstraintType]: Judge<ValueOf<T>> } = {
  audience_allowlist: (allowed, parameters) => areListed(AUDIENCE_KEYS, allowed, parameters),
  column_denylist: unjudged,
  content_review_tier: unjudged,
  custom: ([key, expected], parameters) => holdsOnly(key as string, expected as string, parameters),
  domain_exact: (domain, parameters) => goOnlyTo(host => host === normalHost(domain), parameters),
  domain_glob: (glob, parameters) => goOnlyTo(host => matchesGlob(glob.toLowerCase(), host), parameters),
  governed_intent_required: unjudged,
  max_args_size: (bytes, parameters) => canonicalBytes(parameters).length <= bytes,
  max_length: (bytes, parameters) =>
    textLeaves(parameters).every(({ value }) => Buffer.byteLength(value) <= bytes),
  max_rows_returned: unjudged,
  max_transaction_amount_usd: unjudged,
  memory_store_allowlist: (allowed, parameters) => areListed(STORE_KEYS, allowed, parameters),
  memory_write_deny_patterns: unjudged,
  minimum_autonomy_tier: unjudged,
  minimum_runtime_assurance: unjudged,
  model_constraint: unjudged,
  operation_class: unjudged,
  path_prefix: areUnder,
  regex_match: unjudged,
  require_approval_above: unjudged,
  require_cumulative_approval_above: unjudged,
  require_dual_approval: unjudged,
  seller_exact: unjudged,
  table_allowlist: unjudged,
}

/** Whether the arguments keep a constraint. False also where nobody here can tell. */
export function isKept(constraint: Constraint, parameters: JsonValue): boolean {
  const judge = JUDGES[constraint.type] as Judge<unknown>
  return judge('value' in constraint ? constraint.value : undefined, parameters)
}

/** Whether this program can ever find a constraint kept. */
export function isJudged(type: ConstraintType): boolean {
  return JUDGES[type] !== unjudged
}

/** One path at least, and every path, lies under the prefix. */
function areUnder(prefix: string, parameters: JsonValue): boolean {
  const paths = textLeaves(parameters).filter(isPathLike)
  return paths.length > 0 && paths.every(({ value }) => isPathUnder(value, prefix))
}

/** One host at least is addressed, every one is allowed, and none is unclear. */
function goOnlyTo(allows: (host: string) => boolean, parameters: JsonValue): boolean {
  const hosts = textLeaves(parameters).map(hostOf)
  const named = hosts.filter(host => host.kind === 'host')
  if (named.length === 0 || hosts.some(({ kind }) => kind === 'unclear')) return false
  return named.every(({ name }) => allows(name))
}

const AUDIENCE_KEYS = new Set(['recipient', 'recipients', 'audience', 'to', 'channel', 'channels'])
const STORE_KEYS = new Set(['store', 'memory_store', 'collection', 'namespace'])

/** One member of these names at least, holding nothing but listed texts. */
function areListed(keys: ReadonlySet<string>, allowed: readonly string[], parameters: JsonValue): boolean {
  const members = membersOf(parameters).filter(([name]) => keys.has(name.toLowerCase()))
  return members.length > 0 && members.every(([, value]) => isListed(value, allowed))
}

function isListed(value: JsonValue, allowed: readonly string[]): boolean {
  if (typeof value === 'string') return allowed.includes(value)
  return (
    typeof value === 'object' &&
    value !== null &&
    isList(value) &&
    value.length > 0 &&
    value.every(item => isListed(item, allowed))
  )
}

/** Keys that say something of an output: no argument can keep them. */
const OUTPUT_KEYS = new Set(['output_digest_sha256', 'require_finding_purchase'])

/** One member of this name at least, and every one has this value: a decoy beside another value keeps nothing. */
function holdsOnly(key: string, expected: string, parameters: JsonValue): boolean {
  const values = membersOf(parameters).filter(([name]) => name === key)
  return !OUTPUT_KEYS.has(key) && values.length > 0 && values.every(([, value]) => value === expected)
}

/** Every member of every object, however deep. */
function membersOf(value: JsonValue): readonly (readonly [string, JsonValue])[] {
  if (typeof value !== 'object' || value === null) return []
  if (isList(value)) return value.flatMap(membersOf)
  return Object.entries(value).flatMap(([name, member]) => [[name, member] as const, ...membersOf(member)])
}
