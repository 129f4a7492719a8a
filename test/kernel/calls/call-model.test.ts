// Random sequences of tool-call commands, crashes and reopenings against a plain model: every answer and every state is
// the same, and after each step exactly the calls that are ready hold a call of their budget and a nonce.
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { callPolicyOf } from '../../../kernel/calls/call-policy.js'
import type { Settlement } from '../../../kernel/settling/settlement.js'
import { ToolCalls } from '../../../kernel/calls/tool-calls.js'
import { unixSeconds } from '../../../protocol/clock.js'
import type { SignedExecutionNonce } from '../../../protocol/execution-nonce.js'
import type { CallAnswer } from '../../../protocol/tool-call-rpc.js'
import { AdmissionWorld } from '../../support/admission-world.js'
import { FULL_RUN_TIMEOUT_MS, fullCount } from '../../support/counts.js'
import { callUnder, contextAt, tokenOf } from '../../support/tool-call.js'

const CALLS = 6
const MAXIMUM = 2
const CAPACITY = 3
const TTL_SECONDS = 30
const UNSCHEDULED = { forget() {}, schedule() {} } as Partial<Settlement> as Settlement

type State = 'compensated_before_dispatch' | 'none' | 'prepared' | 'ready_to_dispatch'
type Kind = 'cancel' | 'preflight' | 'reserve'
interface Step {
  readonly at: number
  readonly crash: 'after' | 'before' | null
  readonly kind: Kind | 'pass' | 'reopen'
}
const COMMITS: Record<Kind, string> = {
  cancel: 'compensated',
  preflight: 'call_preflighted',
  reserve: 'call_reserved',
}

/** What stands, as plainly as it can be said. Calls take turns at two tokens. */
class Model {
  readonly states: State[] = Array.from({ length: CALLS }, () => 'none')
  readonly expiries: number[] = []

  ready(token: number | null = null): number {
    return this.states.filter(
      (state, at) => state === 'ready_to_dispatch' && (token === null || at % 2 === token),
    ).length
  }

  /** What a command makes of a call, if its commit is reached. */
  after(kind: Kind, at: number, now: number): State {
    const state = this.states[at] as State
    const hasBudget = this.ready(at % 2) < MAXIMUM
    switch (kind) {
      case 'preflight':
        return state === 'none' && hasBudget ? 'prepared' : state
      case 'reserve':
        if (state !== 'prepared' || now >= (this.expiries[at] as number)) return state
        if (!hasBudget) return 'compensated_before_dispatch'
        return this.ready() < CAPACITY ? 'ready_to_dispatch' : state
      case 'cancel':
        return state === 'none' ? state : 'compensated_before_dispatch'
    }
  }

  move(at: number, to: State, now: number): void {
    if (this.states[at] === 'none' && to === 'prepared') this.expiries[at] = now + TTL_SECONDS
    this.states[at] = to
  }

  /** Recovery takes back what has expired and adopts the rest. */
  reopen(now: number): void {
    for (const [at, state] of this.states.entries()) {
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
    const to = this.model.after(kind, at, now)
    this.world.crashAt = crash === null ? null : `${COMMITS[kind]}.${crash}`
    const answer = await this.#ask(kind, at).catch((error: unknown) => {
      if (this.world.crashAt === null && crash !== null) return 'crashed' as const
      throw error
    })
    if (answer !== 'crashed' || crash === 'after') this.model.move(at, to, now)
    if (answer === 'crashed') return this.#reopen()
    this.world.crashAt = null
    if (answer !== null) expect(answer.state).toBe(to === 'none' ? null : to)
  }

  async #ask(kind: Kind, at: number): Promise<CallAnswer | null> {
    const request = this.#requests[at] as ReturnType<typeof callUnder>
    if (kind === 'cancel') return this.#cancel(at)
    const { context: admission, keys, config, people } = this.world
    const callPolicy = callPolicyOf(
      { config, keys },
      { targets: [{ serverId: 'notes', toolName: 'append' }] },
    )
    const calls = new ToolCalls({ ...admission, callPolicy }, UNSCHEDULED)
    const caller = { callerPublicKey: people.caller.publicKey, uid: 1 }
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

  async #cancel(at: number): Promise<null> {
    const operation = await this.#operation(at)
    if (operation !== undefined) {
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
    expect(held).toEqual({ calls: [this.model.ready(0), this.model.ready(1)], nonces: this.model.ready() })
  }
}

const step: fc.Arbitrary<Step> = fc.record({
  at: fc.nat(CALLS - 1),
  crash: fc.constantFrom<Step['crash'][]>(null, null, null, 'before', 'after'),
  kind: fc.oneof(
    { weight: 4, arbitrary: fc.constant('preflight' as const) },
    { weight: 6, arbitrary: fc.constant('reserve' as const) },
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
        try {
          const driver = new Driver(world)
          for (const one of steps) await driver.take(one)
        } finally {
          world.remove()
        }
      }),
      { numRuns: fullCount(4, 500) },
    )
  },
  // Eight times the sequences that other models run.
  10 * FULL_RUN_TIMEOUT_MS,
)
