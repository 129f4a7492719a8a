// Owns: what the configuration of a tool asks of a call's arguments and of what is returned, as guards.
// Must never: repeat an argument or an output in what a guard says.
// Source: the guard order of the kernel; a guard that errs denies.
import { canonicalBytes } from '../../protocol/canonical.js'
import type { JsonValue } from '../../protocol/json.js'
import { readJsonSchema, schemaFault } from '../output/json-schema.js'
import { type OutputGuard, schemaGuard } from '../output/output-guards.js'
import { secretFormIn } from '../output/secret-forms.js'
import type { ConfiguredTool } from './call-config.js'
import type { CallGuard } from './evaluate-call.js'

/** The guards over the arguments of one tool, the cheapest first. */
export function argumentGuardsOf({ guards }: Pick<ConfiguredTool, 'guards'>): readonly CallGuard[] {
  if (guards === null) return []
  const { argumentSchema, maximumArgumentBytes: maximum, secretScan } = guards
  return [
    ...(maximum === null ? [] : [guardOf('argument_size', value => sizeFault(value, maximum))]),
    ...(secretScan ? [guardOf('argument_secret_scan', secretFault)] : []),
    ...(argumentSchema === null ? [] : [guardOf('argument_schema', argumentFault(argumentSchema))]),
  ]
}

/** The guards over what one tool returned. */
export function outputGuardsOf({
  outputSchema,
}: Pick<ConfiguredTool, 'outputSchema'>): readonly OutputGuard[] {
  return outputSchema === null ? [] : [schemaGuard(outputSchema)]
}

function guardOf(name: string, fault: (value: JsonValue) => string | null): CallGuard {
  return { name, judge: ({ request }) => fault(request.params) }
}

function sizeFault(value: JsonValue, maximum: number): string | null {
  const { length } = canonicalBytes(value)
  return length <= maximum ? null : `expected arguments of at most ${maximum} bytes, got ${length}`
}

function secretFault(value: JsonValue): string | null {
  const form = secretFormIn(canonicalBytes(value))
  return form === null ? null : `expected no argument in the form of a secret, got what looks like ${form}`
}

function argumentFault(schema: JsonValue): (value: JsonValue) => string | null {
  const read = readJsonSchema(schema)
  return value => {
    const fault = schemaFault(read, value)
    return fault === null
      ? null
      : `expected arguments that the schema of the tool describes, got some that differ at ${fault}`
  }
}
