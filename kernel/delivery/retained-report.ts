// Owns: what stays of a report beside its raw outcome: the observation that receipts repeat, and the executor's
// signature. With the sealed outcome both make the whole signed report again.
// Must never: hold the output. Source: `chio.authenticated-caller-observation.v1` of the kernel's receipts.
import { CallerExecutor } from '../../protocol/caller-authorization.js'
import type { VerifiedCallerReport } from '../../protocol/caller-report.js'
import {
  digest,
  type Infer,
  identifier,
  integer,
  literal,
  object,
  signatureHex,
} from '../../protocol/codec.js'
import { MAXIMUM_INTEGER } from '../../protocol/limits.js'

const OBSERVATION_SCHEMA = 'chio.authenticated-caller-observation.v1'
const positive = integer({ min: 1, max: MAXIMUM_INTEGER })

export const ReportedObservation = object({
  authorization_digest: digest(),
  claim_id: identifier(),
  completed_at_unix_ms: positive,
  execution_started_at_unix_ms: positive,
  executor: CallerExecutor,
  report_digest: digest(),
  schema: literal(OBSERVATION_SCHEMA),
})
export type ReportedObservation = Infer<typeof ReportedObservation>

export const RetainedReport = object({ observation: ReportedObservation, signature: signatureHex() })
export type RetainedReport = Infer<typeof RetainedReport>

export function retainedReportOf({ digest: report_digest, signed }: VerifiedCallerReport): RetainedReport {
  const { output: _output, realized_cost: _cost, schema: _schema, ...observed } = signed.report
  return {
    observation: { ...observed, report_digest, schema: OBSERVATION_SCHEMA },
    signature: signed.signature,
  }
}
