// Owns what the sidecar asks of a kernel: three decisions, and what it needs of it before it listens.
// Must never: decide anything. Denials are replies with a receipt; whatever is thrown is answered by one fixed body.
// Source: the caller API of the kernel: reserve, start, reconcile.
import type {
  EvaluateReply,
  ReportBody,
  ReportReply,
  StartBody,
  StartReply,
} from '../protocol/caller-http.js'
import { BrokerError } from '../protocol/errors.js'
import type { PublicKey } from '../protocol/keys.js'
import type { ToolCallRequest } from '../protocol/tool-call.js'

/** What a sidecar cannot be without. */
export interface DeliveryFoundations {
  /** The kernel delivers to one executor, pinned before it recovered. */
  readonly pinnedExecutor: boolean
  /** Its decisions are on disk before they are told. */
  readonly durableAdmission: boolean
  /** It holds and captures budgets. */
  readonly budgetAuthority: boolean
}

export interface CallerKernel {
  readonly foundations: DeliveryFoundations
  /** Preflight and reserve of one call of an agent. It authorizes nothing. */
  evaluate(agent: PublicKey, request: ToolCallRequest): Promise<EvaluateReply>
  /** The committed authorization of a reserved call; the same one again for a start whose answer was lost. */
  start(body: StartBody): Promise<StartReply>
  /** Ends a started call by its executor's report; the original receipt again for a report that came twice. */
  report(body: ReportBody): Promise<ReportReply>
}

const NAMES: Readonly<Record<keyof DeliveryFoundations, string>> = {
  pinnedExecutor: 'a pinned executor (callerDelivery.executor)',
  durableAdmission: 'durable admission (a durableMode other than off)',
  budgetAuthority: 'budget authority',
}

/** @throws BrokerError `invalid_configuration`: one refusal that names everything that is missing. */
export function assertFoundations({ foundations }: Pick<CallerKernel, 'foundations'>): void {
  const names = Object.keys(NAMES) as (keyof DeliveryFoundations)[]
  const missing = names.filter(name => !foundations[name]).map(name => NAMES[name])
  if (missing.length === 0) return
  throw new BrokerError(
    'invalid_configuration',
    `sidecar refused: expected ${missing.join(', ')}, got none; nothing listens`,
    { outcome: 'not_started' },
  )
}
