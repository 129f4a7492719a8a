// Owns: the chain of guards over what a provider delivered: in their order, the first that refuses or fails ends it.
// Must never: repeat what was delivered in a reason, or pass what a guard failed to judge.
// Source: the guard order of the kernel; a guard that errs denies.
import type { HeaderField } from '../../protocol/destination.js'
import { isBrokerError } from '../../protocol/errors.js'
import { type JsonValue, parseStrictJson } from '../../protocol/json.js'
import type { GuardEvidence } from '../../protocol/kernel-receipt.js'
import { readJsonSchema, schemaFault } from './json-schema.js'
import { secretFormIn } from './secret-forms.js'

/** What was delivered to the host, as the broker's receipt binds it. */
export interface DeliveredOutput {
  readonly status: number
  readonly headers: readonly HeaderField[]
  readonly body: Uint8Array
}

export interface OutputGuard {
  readonly name: string
  /** @returns why the output is refused, without any of it; null when it passes. A throw refuses. */
  judge(output: DeliveredOutput): string | null
}

/** The guards of a kernel's configuration; null or false leaves one out. */
export interface OutputGuardSettings {
  readonly maximumBodyBytes: number | null
  readonly secretScan: boolean
  readonly jsonSchema: JsonValue
}

/** What all guards together said. */
export interface OutputJudgement {
  readonly evidence: readonly GuardEvidence[]
  /** The guard that refused, and why. */
  readonly refusal: { readonly guard: string; readonly reason: string } | null
}

/** The guards of a configuration, the cheapest first. @throws BrokerError `invalid_configuration`. */
export function configuredGuards(settings: OutputGuardSettings | null): readonly OutputGuard[] {
  if (settings === null) return []
  const { jsonSchema, maximumBodyBytes, secretScan } = settings
  return [
    ...(maximumBodyBytes === null ? [] : [sizeGuard(maximumBodyBytes)]),
    ...(secretScan ? [secretGuard()] : []),
    ...(jsonSchema === null ? [] : [schemaGuard(jsonSchema)]),
  ]
}

/** Judges an output. What stands behind the guard that refused is not asked. */
export function judgeOutput(guards: readonly OutputGuard[], output: DeliveredOutput): OutputJudgement {
  const evidence: GuardEvidence[] = []
  for (const guard of guards) {
    const reason = judged(guard, output)
    if (reason === null) evidence.push({ guard_name: guard.name, verdict: true })
    else {
      evidence.push({ details: reason, guard_name: guard.name, verdict: false })
      return { evidence, refusal: { guard: guard.name, reason } }
    }
  }
  return { evidence, refusal: null }
}

/** What a guard throws may quote the output, so only that it failed is told. */
function judged(guard: OutputGuard, output: DeliveredOutput): string | null {
  try {
    return guard.judge(output)
  } catch (error) {
    const kind = isBrokerError(error) ? error.code : 'fault'
    return `guard "${guard.name}" error (fail-closed): ${kind}`
  }
}

function sizeGuard(maximumBodyBytes: number): OutputGuard {
  return {
    name: 'size',
    judge: ({ body }) =>
      body.length <= maximumBodyBytes
        ? null
        : `expected a body of at most ${maximumBodyBytes} bytes, got ${body.length}`,
  }
}

function secretGuard(): OutputGuard {
  return {
    name: 'secret_scan',
    judge: ({ body, headers }) => {
      const found = [body, ...headers.map(({ value }) => value)].map(secretFormIn).find(form => form !== null)
      return found === undefined
        ? null
        : `expected nothing in the form of a secret, got what looks like ${found}`
    },
  }
}

/** @throws BrokerError `invalid_configuration` for what is no schema of the subset. */
export function schemaGuard(jsonSchema: JsonValue): OutputGuard {
  const schema = readJsonSchema(jsonSchema)
  return {
    name: 'json_schema',
    judge: ({ body }) => {
      const fault = schemaFault(schema, parseStrictJson(body, 'delivered body'))
      return fault === null
        ? null
        : `expected a body that its schema describes, got one that differs at ${fault}`
    },
  }
}
