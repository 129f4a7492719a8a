// Random sequences of requests, words, crashes and reopenings against the store and against a plain model of waiting for
// approvals: every answer and everything that stands afterwards is the same.
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { proposalPins } from '../../kernel/approvals.js'
import type { ReserveRequest } from '../../protocol/kernel-rpc.js'
import type { ThresholdProposal } from '../../protocol/threshold-proposal.js'
import { AdmissionWorld, Crash } from '../support/admission-world.js'
import { type ApprovalCommand, ApprovalModel, REQUIRED } from '../support/approval-model.js'
import { APPROVER_KEYS, type ApproverName, wordOn } from '../support/approvers.js'
import { FULL_RUN_TIMEOUT_MS, fullCount, isFullRun } from '../support/counts.js'

const MAXIMUM = 2
const CAPACITY = 1
const STATES = ['approval_required', 'approval_reserved', 'compensated_before_dispatch', 'ready_to_dispatch']
const at = fc.nat(2)
const command: fc.Arbitrary<ApprovalCommand> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ at, kind: fc.constant('ask' as const) }) },
  {
    weight: 9,
    arbitrary: fc.record({
      at,
      decision: fc.constantFrom('approved', 'approved', 'approved', 'approved', 'denied'),
      kind: fc.constant('say' as const),
      lifeSeconds: fc.constantFrom(10, 900),
      who: fc.constantFrom(...(Object.keys(APPROVER_KEYS) as ApproverName[])),
    }),
  },
  { weight: 1, arbitrary: fc.record({ at, kind: fc.constant('cancel' as const) }) },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant('pass' as const), seconds: fc.constantFrom(1, 9, 10, 30, 450) }),
  },
  { weight: 1, arbitrary: fc.constant({ kind: 'reopen' as const }) },
)
/** Where the commit of a command is ended: before it is on disk, after it, or not at all. */
const crash = fc.constantFrom(null, null, null, null, 'before', 'after')
const step = fc.record({ command, crash })

class Driver {
  readonly world: AdmissionWorld
  readonly model = new ApprovalModel(MAXIMUM, CAPACITY)
  readonly #requests = new Map<number, ReserveRequest>()
  readonly #ids = new Map<number, string>()
  crashes = 0

  constructor(world: AdmissionWorld) {
    this.world = world
  }

  async take(given: ApprovalCommand, crashed: string | null): Promise<void> {
    const commit = this.#commitOf(given)
    this.world.crashAt = crashed === null || commit === null ? null : `${commit}.${crashed}`
    const said = await this.#codeOf(() => this.#run(given))
    this.world.crashAt = null
    if (said === 'crash') await this.#afterCrash(given, crashed === 'after')
    else expect(`${given.kind}: ${said}`).toBe(`${given.kind}: ${this.model.run(given)}`)
    await this.#compare()
  }

  #commitOf(given: ApprovalCommand): string | null {
    if (given.kind === 'cancel') return 'compensated'
    if (given.kind === 'say') return 'approval_submitted'
    if (given.kind !== 'ask') return null
    return this.model.operations.has(given.at) ? 'reserved' : 'announced'
  }

  async #afterCrash(given: ApprovalCommand, isOnDisk: boolean): Promise<void> {
    this.crashes += 1
    if (isOnDisk) this.model.run(given)
    this.model.run({ kind: 'reopen' })
    await this.world.reopen()
  }

  async #codeOf(act: () => Promise<unknown>): Promise<string> {
    try {
      await act()
      return 'ok'
    } catch (error) {
      if (error instanceof Crash) return 'crash'
      return (error as { code?: string }).code ?? String(error)
    }
  }

  async #run(given: ApprovalCommand): Promise<unknown> {
    switch (given.kind) {
      case 'pass':
        return this.world.clock.pass(given.seconds * 1_000)
      case 'reopen':
        return this.world.reopen()
      case 'ask':
        return this.world.reserve(this.#request(given.at))
      case 'cancel':
      case 'say':
        return this.#act(given)
    }
  }

  async #act(given: Extract<ApprovalCommand, { readonly at: number }>): Promise<unknown> {
    const operation = await this.#operation(given.at)
    if (operation === undefined) return undefined
    const { operationId } = operation
    const { store } = this.world
    if (given.kind !== 'say') return store.compensate({ cause: 'cancelled', operationId })
    const { clock, context } = this.world
    const until = Math.floor(clock.unixMs() / 1_000) + given.lifeSeconds
    const proposal = operation.attachments.threshold_proposal as ThresholdProposal
    const approval = wordOn({ proposal }, APPROVER_KEYS[given.who], {
      clock,
      decision: given.decision,
      expires_at: Math.min(until, proposal.body.proposalDeadline),
    })
    return store.submitApproval({ approval, operationId, pins: proposalPins(context) })
  }

  /** The same request for good, with a proof of now. */
  #request(place: number): ReserveRequest {
    const proofIssuedAtUnixSeconds = Math.floor(this.world.clock.unixMs() / 1_000)
    const known = this.#requests.get(place) ?? this.world.announcement()
    this.#requests.set(place, known)
    return { ...known, proofIssuedAtUnixSeconds }
  }

  async #operation(place: number) {
    const operationId = this.#ids.get(place)
    return operationId === undefined ? undefined : this.world.store.findOperation(operationId)
  }

  /** Ids are read from the store: a crash may have taken the answer. */
  async #learnIds(): Promise<void> {
    for (const operation of await this.world.store.listOperations({ callerPublicKey: null, limit: 100 })) {
      for (const [place, { invocationId }] of this.#requests) {
        if (invocationId === operation.binding.request_id) this.#ids.set(place, operation.operationId)
      }
    }
  }

  async #compare(): Promise<void> {
    await this.#learnIds()
    const { grant, store, tables } = this.world
    for (const place of this.#requests.keys()) {
      const operation = await this.#operation(place)
      const expected = this.model.operations.get(place)
      expect({ place, state: operation?.state }).toEqual({ place, state: expected?.state })
      if (operation === undefined || expected === undefined) continue
      expect(await store.approvalsOf(operation.operationId)).toHaveLength(expected.words)
      const isMinted = operation.call.kind === 'brokered'
      expect(operation.attachments.execution_nonce_id !== undefined).toBe(isMinted)
    }
    expect((await store.findGrant(grant.grantId))?.held).toBe(this.model.held)
    const head = await tables.transaction('looked', move => move.head)
    expect(head.liveNonces).toBe(this.model.nonces)
  }
}

test(
  'waiting for approvals answers and stands as a plain model says, through crashes and reopenings',
  async () => {
    let crashes = 0
    const states = new Set<string>()
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40, minLength: 15 }), async steps => {
        const world = await AdmissionWorld.make({
          capacity: CAPACITY,
          maximumExecutions: MAXIMUM,
          requiredApprovals: REQUIRED,
        })
        const driver = new Driver(world)
        try {
          for (const { command: given, crash: crashed } of steps) {
            await driver.take(given, crashed)
            for (const { state } of driver.model.operations.values()) states.add(state)
          }
          crashes += driver.crashes
        } finally {
          world.remove()
        }
      }),
      { numRuns: fullCount(4, 150) },
    )
    expect(crashes).toBeGreaterThan(0)
    if (isFullRun) expect([...states].sort()).toEqual(STATES)
  },
  FULL_RUN_TIMEOUT_MS * 5,
)
