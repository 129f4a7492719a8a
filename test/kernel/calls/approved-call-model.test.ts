// Random sequences of preflights, words, reserves, crashes and openings of calls that need an approval, against a plain
// model: a call holds from its first preflight to its end, and only the last word lets it have a nonce.
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { callPolicyOf } from '../../../kernel/calls/call-policy.js'
import { ToolCalls } from '../../../kernel/calls/tool-calls.js'
import type { Settlement } from '../../../kernel/settling/settlement.js'
import { unixSeconds } from '../../../protocol/clock.js'
import { isBrokerError } from '../../../protocol/errors.js'
import type { SignedExecutionNonce } from '../../../protocol/execution-nonce.js'
import { AdmissionWorld, Crash } from '../../support/admission-world.js'
import { APPROVER_KEYS, wordOn } from '../../support/approvers.js'
import { FULL_RUN_TIMEOUT_MS, fullCount } from '../../support/counts.js'
import { callUnder, contextAt, tokenOf } from '../../support/tool-call.js'

const CALLS = 4
const MAXIMUM = 2
const NONCE_SECONDS = 30
const WAIT_SECONDS = 900
const UNSCHEDULED = { forget() {}, schedule() {} } as Partial<Settlement> as Settlement

/** `issued`: approved, and the nonce is there. */
type Stage = 'agreed' | 'ended' | 'issued' | 'none' | 'ready' | 'waits'
const STATES: Readonly<Record<Stage, string>> = {
  agreed: 'approval_reserved',
  ended: 'compensated_before_dispatch',
  issued: 'approval_reserved',
  none: 'none',
  ready: 'ready_to_dispatch',
  waits: 'approval_required',
}
const HOLDS: readonly Stage[] = ['agreed', 'issued', 'ready', 'waits']

type Kind = 'approve' | 'cancel' | 'deny' | 'preflight' | 'reserve'
interface Step {
  readonly at: number
  readonly crash: 'after' | 'before' | null
  readonly kind: Kind | 'pass' | 'reopen'
}
const COMMITS: Record<Kind, string> = {
  approve: 'approval_submitted',
  cancel: 'compensated',
  deny: 'approval_submitted',
  preflight: 'call_preflighted',
  reserve: 'call_reserved',
}

class Model {
  readonly stages: Stage[] = Array.from({ length: CALLS }, () => 'none')
  readonly ends: number[] = []
  readonly deadlines: number[] = []

  count(...of: readonly Stage[]): number {
    return this.stages.filter(stage => of.includes(stage)).length
  }

  /** What a command makes of a call, if its commit is reached. */
  after(kind: Kind, at: number, now: number): Stage {
    const stage = this.stages[at] as Stage
    const isDue = stage !== 'none' && now >= (this.deadlines[at] as number)
    switch (kind) {
      case 'preflight':
        if (stage === 'none') return this.count(...HOLDS) < MAXIMUM ? 'waits' : 'none'
        return stage === 'agreed' && !isDue ? 'issued' : stage
      case 'approve':
        return stage === 'waits' && !isDue ? 'agreed' : stage
      case 'deny':
        return stage === 'waits' && !isDue ? 'ended' : stage
      case 'reserve':
        if (stage !== 'issued' || now >= (this.ends[at] as number)) return stage
        return isDue ? 'ended' : 'ready'
      case 'cancel':
        return stage === 'none' ? stage : 'ended'
    }
  }

  move(at: number, to: Stage, now: number): void {
    if (to === 'waits' && this.stages[at] === 'none') this.deadlines[at] = now + WAIT_SECONDS
    if (to === 'issued' && this.stages[at] === 'agreed') this.ends[at] = now + NONCE_SECONDS
    this.stages[at] = to
  }

  reopen(now: number): void {
    for (const [at, stage] of this.stages.entries()) {
      const isWaiting = stage === 'waits' || stage === 'agreed'
      const hasNonce = stage === 'issued' || stage === 'ready'
      const isOver =
        (isWaiting && now >= (this.deadlines[at] as number)) || (hasNonce && now >= (this.ends[at] as number))
      if (isOver) this.stages[at] = 'ended'
    }
  }
}

class Driver {
  readonly world: AdmissionWorld
  readonly model = new Model()
  readonly #requests
  readonly #nonces: (SignedExecutionNonce | null)[] = []

  constructor(world: AdmissionWorld) {
    this.world = world
    const issued = { expires_at: 1_900_000_000, id: 'token', issued_at: 1_700_000_000 }
    const of = { caller: world.people.caller, keys: world.keys }
    const token = tokenOf(of, { max_invocations: MAXIMUM }, issued)
    this.#requests = Array.from({ length: CALLS }, (_, at) => callUnder(token, { id: `call-${at}` }))
  }

  async take({ at, crash, kind }: Step): Promise<void> {
    if (kind === 'pass') this.world.clock.pass(at * 100_000)
    else if (kind === 'reopen') await this.#reopen()
    else await this.#command(kind, at, crash)
    await this.#compare()
  }

  async #command(kind: Kind, at: number, crash: Step['crash']): Promise<void> {
    const now = unixSeconds(this.world.clock)
    // An answer that was lost took the nonce with it, until the same preflight is asked again.
    const hasNone = kind === 'reserve' && (this.#nonces[at] ?? null) === null
    const to = hasNone ? (this.model.stages[at] as Stage) : this.model.after(kind, at, now)
    this.world.crashAt = crash === null ? null : `${COMMITS[kind]}.${crash}`
    const crashed = await this.#ask(kind, at).then(
      () => false,
      (error: unknown) => {
        if (error instanceof Crash) return true
        if (isBrokerError(error)) return false
        throw error
      },
    )
    if (!crashed || crash === 'after') this.model.move(at, to, now)
    if (crashed) return this.#reopen()
    this.world.crashAt = null
  }

  async #ask(kind: Kind, at: number): Promise<void> {
    const request = this.#requests[at] as ReturnType<typeof callUnder>
    const caller = { callerPublicKey: this.world.people.caller.publicKey, uid: 1 }
    const context = contextAt(1)
    if (kind === 'preflight') {
      const { executionNonce } = await this.#calls().preflight(caller, { context, request })
      this.#nonces[at] = executionNonce ?? this.#nonces[at] ?? null
    } else if (kind === 'reserve') {
      await this.#calls().reserve(caller, { context, executionNonce: this.#nonces[at] ?? null, request })
    } else await this.#word(kind, at)
  }

  #calls(): ToolCalls {
    const { config, context, keys } = this.world
    const targets = [{ requiredApprovals: 1, serverId: 'notes', toolName: 'append' }]
    return new ToolCalls({ ...context, callPolicy: callPolicyOf({ config, keys }, { targets }) }, UNSCHEDULED)
  }

  async #word(kind: 'approve' | 'cancel' | 'deny', at: number): Promise<void> {
    const operation = await this.#operation(at)
    if (operation === undefined) return
    const { attachments, operationId } = operation
    const { config, clock, keys, store } = this.world
    if (kind === 'cancel') {
      await store.compensate({ cause: 'cancelled', operationId })
      return
    }
    const proposal = attachments.threshold_proposal
    if (proposal === undefined) throw new Error('expected a call with its proposal')
    const decision = kind === 'approve' ? 'approved' : 'denied'
    const approval = wordOn({ proposal }, APPROVER_KEYS.lead, { clock, decision })
    const pins = { approvers: config.approvers, policyAuthority: keys.kernel.publicKey }
    await store.submitApproval({ approval, operationId, pins })
  }

  async #operation(at: number) {
    const listed = await this.world.store.listOperations({ callerPublicKey: null, limit: 100 })
    return listed.find(({ binding }) => binding.request_id === `call-${at}`)
  }

  async #reopen(): Promise<void> {
    await this.world.reopen()
    this.model.reopen(unixSeconds(this.world.clock))
  }

  async #compare(): Promise<void> {
    const found = []
    for (let at = 0; at < CALLS; at += 1) found.push(await this.#operation(at))
    expect(found.map(operation => operation?.state ?? 'none')).toEqual(
      this.model.stages.map(stage => STATES[stage]),
    )
    const withNonce = found.filter(operation => operation?.call.kind === 'tool_call').length
    expect(withNonce).toBeGreaterThanOrEqual(this.model.count('issued', 'ready'))
    for (const [at, stage] of this.model.stages.entries()) {
      if (stage === 'waits' || stage === 'agreed') expect(found[at]?.call.kind).toBe('announced_call')
    }
    const held = await this.world.tables.transaction('looked', move => ({
      calls: move.budgets.row('token', 0).invocations,
      nonces: move.head.liveNonces,
    }))
    expect(held).toEqual({ calls: this.model.count(...HOLDS), nonces: this.model.count('ready') })
  }
}

const step: fc.Arbitrary<Step> = fc.record({
  at: fc.nat(CALLS - 1),
  crash: fc.constantFrom<Step['crash'][]>(null, null, null, 'before', 'after'),
  kind: fc.oneof(
    { weight: 6, arbitrary: fc.constant('preflight' as const) },
    { weight: 4, arbitrary: fc.constant('approve' as const) },
    { weight: 3, arbitrary: fc.constant('reserve' as const) },
    { weight: 2, arbitrary: fc.constantFrom('cancel' as const, 'deny' as const) },
    { weight: 1, arbitrary: fc.constantFrom('pass' as const, 'reopen' as const) },
  ),
})

test(
  'a call that needs an approval holds while it waits, and goes on only by its approver’s word',
  async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 15, maxLength: 40 }), async steps => {
        const world = await AdmissionWorld.make()
        try {
          const driver = new Driver(world)
          for (const one of steps) await driver.take(one)
        } finally {
          world.remove()
        }
      }),
      { numRuns: fullCount(3, 300) },
    )
  },
  FULL_RUN_TIMEOUT_MS,
)
