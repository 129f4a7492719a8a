// Random sequences of tool-call commands, crashes and reopenings against a plain model: every answer and every state is
// the same; after each step exactly the calls that are ready hold a nonce, and they and the started ones an invocation.
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { callPolicyOf } from '../../../kernel/calls/call-policy.js'
import type { Settlement } from '../../../kernel/settling/settlement.js'
import { ToolCalls } from '../../../kernel/calls/tool-calls.js'
import { unixSeconds } from '../../../protocol/clock.js'
import type { SignedExecutionNonce } from '../../../protocol/execution-nonce.js'
import type { CallAnswer, ReportCallRequest, StartAnswer } from '../../../protocol/tool-call-rpc.js'
import { AdmissionWorld } from '../../support/admission-world.js'
import { TestExecutor } from '../../support/caller-executor.js'
import { FULL_RUN_TIMEOUT_MS, fullCount } from '../../support/counts.js'
import { callUnder, contextAt, tokenOf } from '../../support/tool-call.js'

const CALLS = 6
const MAXIMUM = 2
const CAPACITY = 3
const TTL_SECONDS = 30
const EXECUTOR = new TestExecutor()
const UNSCHEDULED = { forget() {}, schedule() {} } as Partial<Settlement> as Settlement

type State =
  | 'awaiting_caller_report'
  | 'compensated_before_dispatch'
  | 'completed'
  | 'dispatch_committed'
  | 'finalizing'
  | 'none'
  | 'prepared'
  | 'ready_to_dispatch'
type Kind = 'cancel' | 'preflight' | 'report' | 'reserve' | 'start'
/** Before or after the first or the second commit of a command. */
interface CrashAt {
  readonly commit: 0 | 1
  readonly when: 'after' | 'before'
}
interface Step {
  readonly at: number
  readonly crash: CrashAt | null
  readonly kind: Kind | 'pass' | 'reopen'
}
const COMMITS: Record<Kind, readonly [string, string?]> = {
  cancel: ['compensated'],
  preflight: ['call_preflighted'],
  report: ['call_returned', 'call_finished'],
  reserve: ['call_reserved'],
  start: ['call_started', 'call_authorized'],
}
/** Where a command with two commits stands between them. */
const HALFWAY: Partial<Record<Kind, State>> = { report: 'finalizing', start: 'dispatch_committed' }
const STARTED: readonly State[] = ['awaiting_caller_report', 'completed', 'dispatch_committed', 'finalizing']

/** What stands, as plainly as it can be said. Calls take turns at two tokens. */
class Model {
  readonly states: State[] = Array.from({ length: CALLS }, () => 'none')
  readonly expiries: number[] = []

  ready(token: number | null = null): number {
    return this.states.filter(
      (state, at) => state === 'ready_to_dispatch' && (token === null || at % 2 === token),
    ).length
  }

  /** Whether a call's invocation is counted: held, or spent. */
  counted(token: number): number {
    return (
      this.ready(token) +
      this.states.filter((state, at) => STARTED.includes(state) && at % 2 === token).length
    )
  }

  /** What a command makes of a call, if its last commit is reached. */
  after(kind: Kind, at: number, now: number): State {
    const state = this.states[at] as State
    const hasBudget = this.counted(at % 2) < MAXIMUM
    switch (kind) {
      case 'preflight':
        return state === 'none' && hasBudget ? 'prepared' : state
      case 'reserve':
        if (state !== 'prepared' || now >= (this.expiries[at] as number)) return state
        if (!hasBudget) return 'compensated_before_dispatch'
        return this.ready() < CAPACITY ? 'ready_to_dispatch' : state
      case 'cancel':
        return state === 'none' || STARTED.includes(state) ? state : 'compensated_before_dispatch'
      case 'start':
        if (state !== 'ready_to_dispatch' || now >= (this.expiries[at] as number)) return state
        return 'awaiting_caller_report'
      case 'report':
        return state === 'awaiting_caller_report' || state === 'finalizing' ? 'completed' : state
    }
  }

  /** What a command that is cut off there makes of a call. */
  cut(kind: Kind, at: number, { crash, to }: { crash: CrashAt; to: State }): State {
    const state = this.states[at] as State
    const commits = crash.commit + (crash.when === 'after' ? 1 : 0)
    const halfway = to === state ? state : (HALFWAY[kind] ?? to)
    return commits === 0 ? state : commits === 1 ? halfway : to
  }

  move(at: number, to: State, now: number): void {
    if (this.states[at] === 'none' && to === 'prepared') this.expiries[at] = now + TTL_SECONDS
    this.states[at] = to
  }

  /** Recovery takes back what has expired and adopts the rest; what was captured may be acted on. */
  reopen(now: number): void {
    for (const [at, state] of this.states.entries()) {
      if (state === 'dispatch_committed') this.states[at] = 'awaiting_caller_report'
      const isOpen = state === 'prepared' || state === 'ready_to_dispatch'
      if (isOpen && now >= (this.expiries[at] as number)) this.states[at] = 'compensated_before_dispatch'
    }
  }
}

class Driver {
  readonly world: AdmissionWorld
  readonly model = new Model()
  readonly #tokens
  readonly #requests
  readonly #nonces: (SignedExecutionNonce | null)[] = []
  readonly #reports: (ReportCallRequest | undefined)[] = []

  constructor(world: AdmissionWorld) {
    this.world = world
    const issued = { expires_at: 1_900_000_000, issued_at: 1_700_000_000 }
    const of = { caller: world.people.caller, keys: world.keys }
    this.#tokens = [0, 1].map(id =>
      tokenOf(of, { max_invocations: MAXIMUM }, { ...issued, id: `token-${id}` }),
    )
    this.#requests = Array.from({ length: CALLS }, (_, at) =>
      callUnder(this.#tokens[at % 2] as ReturnType<typeof tokenOf>, { id: `call-${at}` }),
    )
  }

  async take({ at, crash, kind }: Step): Promise<void> {
    if (kind === 'pass') this.world.clock.pass(at * 8_000)
    else if (kind === 'reopen') await this.#reopen()
    else await this.#command(kind, at, crash)
    await this.#compare()
  }

  async #command(kind: Kind, at: number, crash: Step['crash']): Promise<void> {
    const now = unixSeconds(this.world.clock)
    if (kind === 'report') await this.#prepareReport(at)
    const to = this.model.after(kind, at, now)
    const commit = crash === null ? undefined : COMMITS[kind][crash.commit]
    this.world.crashAt = commit === undefined ? null : `${commit}.${crash?.when}`
    const isArmed = this.world.crashAt !== null
    const answer = await this.#ask(kind, at).catch((error: unknown) => {
      if (this.world.crashAt === null && isArmed) return 'crashed' as const
      throw error
    })
    if (answer !== 'crashed') this.model.move(at, to, now)
    else this.model.move(at, this.model.cut(kind, at, { crash: crash as CrashAt, to }), now)
    if (answer === 'crashed') return this.#reopen()
    this.world.crashAt = null
    if (answer !== null) expect(answer.state).toBe(to === 'none' ? null : to)
  }

  /** The one report of a call, once it was started: a start that was committed is answered as often as it is asked. */
  async #prepareReport(at: number): Promise<void> {
    if (this.#reports[at] !== undefined || !STARTED.includes(this.model.states[at] as State)) return
    const { authorization } = await this.#start(at)
    if (authorization === null) throw new Error('expected the authorization of a started call')
    this.#reports[at] = { authorization, report: EXECUTOR.report(authorization) }
  }

  async #start(at: number): Promise<StartAnswer> {
    const executionNonce = this.#nonces[at] as SignedExecutionNonce
    const { params } = this.#requests[at] as ReturnType<typeof callUnder>
    return this.#calls().start(null, { arguments: params, context: null, credentials: {}, executionNonce })
  }

  async #ask(kind: Kind, at: number): Promise<CallAnswer | null> {
    const request = this.#requests[at] as ReturnType<typeof callUnder>
    if (kind === 'cancel') return this.#cancel(at)
    if (kind === 'start') return this.#nonces[at] == null ? null : this.#start(at)
    if (kind === 'report') {
      const reported = this.#reports[at]
      return reported === undefined ? null : this.#calls().reconcile(null, reported)
    }
    const calls = this.#calls()
    const caller = { callerPublicKey: this.world.people.caller.publicKey, uid: 1 }
    const context = contextAt(1)
    if (kind === 'reserve') {
      // An answer that was lost with its kernel is asked for again.
      if (this.model.states[at] !== 'none') {
        this.#nonces[at] ??= (await calls.preflight(caller, { context, request })).executionNonce
      }
      return calls.reserve(caller, { context, executionNonce: this.#nonces[at] ?? null, request })
    }
    const answer = await calls.preflight(caller, { context, request })
    this.#nonces[at] ??= answer.executionNonce
    return answer
  }

  #calls(): ToolCalls {
    const { context, keys, config } = this.world
    const targets = [{ serverId: 'notes', toolName: 'append' }]
    const callPolicy = callPolicyOf({ config, keys }, { targets }, EXECUTOR.pin)
    return new ToolCalls({ ...context, callPolicy, guards: [] }, UNSCHEDULED)
  }

  async #cancel(at: number): Promise<null> {
    const operation = await this.#operation(at)
    if (operation !== undefined && !STARTED.includes(operation.state as State)) {
      await this.world.store.compensate({ cause: 'cancelled', operationId: operation.operationId })
    }
    return null
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
    const states = []
    for (let at = 0; at < CALLS; at += 1) states.push((await this.#operation(at))?.state ?? 'none')
    expect(states).toEqual(this.model.states)
    const held = await this.world.tables.transaction('looked', move => ({
      calls: [0, 1].map(id => move.budgets.row(`token-${id}`, 0).invocations),
      nonces: move.head.liveNonces,
    }))
    const counted = [this.model.counted(0), this.model.counted(1)]
    expect(held).toEqual({ calls: counted, nonces: this.model.ready() })
  }
}

const step: fc.Arbitrary<Step> = fc.record({
  at: fc.nat(CALLS - 1),
  crash: fc.option(
    fc.record({
      commit: fc.constantFrom(0 as const, 1 as const),
      when: fc.constantFrom('before' as const, 'after' as const),
    }),
    { freq: 2 },
  ),
  kind: fc.oneof(
    { weight: 4, arbitrary: fc.constant('preflight' as const) },
    { weight: 6, arbitrary: fc.constant('reserve' as const) },
    { weight: 4, arbitrary: fc.constantFrom('start' as const, 'report' as const) },
    { weight: 2, arbitrary: fc.constant('cancel' as const) },
    { weight: 1, arbitrary: fc.constantFrom('pass' as const, 'reopen' as const) },
  ),
})

test(
  'calls hold exactly what they are ready for, through crashes and openings',
  async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 15, maxLength: 40 }), async steps => {
        const world = await AdmissionWorld.make({ capacity: CAPACITY })
        world.executor = EXECUTOR.pin
        try {
          const driver = new Driver(world)
          for (const one of steps) await driver.take(one)
        } finally {
          world.remove()
        }
      }),
      { numRuns: fullCount(3, 500) },
    )
  },
  // Eight times the sequences that other models run.
  10 * FULL_RUN_TIMEOUT_MS,
)
