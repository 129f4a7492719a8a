// Random sequences of commands, crashes and reopenings against the store and against a plain model of it: every answer
// and everything that stands afterwards is the same.
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { AdmissionOperation } from '../../kernel/operation/operation.js'
import { decodeAdmissionOperation } from '../../protocol/admission-document.js'
import { sha256Hex } from '../../protocol/digest.js'
import { preparationDigest } from '../../protocol/execution-nonce-encoding.js'
import type { HistoryLine } from '../../protocol/operation-rpc.js'
import type { ReserveRequest } from '../../protocol/kernel-rpc.js'
import { AdmissionModel, type Command } from '../support/admission-model.js'
import { AdmissionWorld, Crash } from '../support/admission-world.js'
import { FULL_RUN_TIMEOUT_MS, fullCount } from '../support/counts.js'

const MAXIMUM = 5
const CAPACITY = 4
const at = fc.nat(6)
const command: fc.Arbitrary<Command> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('reserve' as const), at }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('retain' as const), at }) },
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('start' as const), at }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constantFrom('cancel', 'change', 'settle'), at }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('cross' as const), at, other: at }) },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('finalize' as const),
      at,
      record: fc.constantFrom('committed', 'not_started', 'receipt', 'unknown'),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant('pass' as const), seconds: fc.constantFrom(1, 15, 29, 30) }),
  },
  { weight: 1, arbitrary: fc.constant({ kind: 'reopen' as const }) },
)
/** Where the commit of a command is ended: before it is on disk, after it, or not at all. */
const crash = fc.constantFrom(null, null, null, null, 'before', 'after')
const step = fc.record({ command, crash })

const COMMITS = {
  cancel: 'compensated',
  cross: 'dispatch_committed',
  finalize: 'finalized',
  reserve: 'reserved',
  retain: 'registration_retained',
  settle: 'settled',
  start: 'dispatch_committed',
} as const

class Driver {
  readonly world: AdmissionWorld
  readonly model = new AdmissionModel(MAXIMUM, CAPACITY)
  readonly #requests = new Map<number, ReserveRequest>()
  readonly #ids = new Map<number, string>()
  crashes = 0

  constructor(world: AdmissionWorld) {
    this.world = world
  }

  async take(given: Command, crashed: string | null): Promise<void> {
    const { kind } = given
    const commit = kind in COMMITS ? COMMITS[kind as keyof typeof COMMITS] : null
    this.world.crashAt = crashed === null || commit === null ? null : `${commit}.${crashed}`
    const said = await this.#codeOf(() => this.#run(given))
    this.world.crashAt = null
    if (said === 'crash') await this.#afterCrash(given, crashed === 'after')
    else expect(`${kind}: ${said}`).toBe(`${kind}: ${this.model.run(given)}`)
    await this.compare()
  }

  /** A commit that was on disk counts; one that was not never happened. What the crash took is only the answer. */
  async #afterCrash(given: Command, isOnDisk: boolean): Promise<void> {
    this.crashes += 1
    if (isOnDisk) this.model.run(given)
    this.model.run({ kind: 'reopen' })
    await this.world.reopen()
    if (given.kind === 'reserve' && isOnDisk) this.#ids.set(given.at, await this.#idOf(given.at))
  }

  async #idOf(place: number): Promise<string> {
    return (await this.world.reserve(this.#request(place))).operationId
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

  async #run(given: Command): Promise<unknown> {
    if (given.kind === 'pass') return this.world.clock.pass(given.seconds * 1_000)
    if (given.kind === 'reopen') return this.world.reopen()
    if (given.kind === 'reserve') return this.#reserve(given.at)
    const operation = await this.#operation(given.at)
    if (operation === undefined) return undefined
    switch (given.kind) {
      case 'change':
        return this.world.reserve({ ...this.#request(given.at), bodySha256: '00'.repeat(32) })
      case 'retain':
        return this.world.retain(operation)
      case 'start':
        return this.world.start(operation)
      case 'cross': {
        const other = await this.#operation(given.other)
        return other === undefined ? undefined : this.world.start(operation, other)
      }
      case 'cancel':
        return this.world.store.compensate({ cause: 'cancelled', operationId: operation.operationId })
      case 'settle':
        return this.world.store.settleNotAccepted({ cause: 'settled', operationId: operation.operationId })
      case 'finalize':
        return this.world.store.finalize(
          operation.operationId,
          await this.#record(given.at, given.record, operation),
        )
    }
  }

  /** One record of each name an operation, as a broker has one. */
  async #record(place: number, name: Parameters<AdmissionWorld['record']>[1], operation: AdmissionOperation) {
    const key = `${place} ${name}`
    const made = this.#records.get(key) ?? this.world.record(operation, name)
    this.#records.set(key, made)
    return made
  }
  readonly #records = new Map<string, ReturnType<AdmissionWorld['record']>>()

  async #reserve(place: number): Promise<void> {
    const { operationId } = await this.world.reserve(this.#request(place))
    this.#ids.set(place, operationId)
  }

  #request(place: number): ReserveRequest {
    const known = this.#requests.get(place)
    // A host that was refused makes a fresh proof of the same request; nothing was committed to yet.
    if (known !== undefined && this.model.operations.has(place)) return known
    const made = this.world.announcement(known === undefined ? {} : { ...known, ...FRESH(this.world) })
    this.#requests.set(place, made)
    return made
  }

  async #operation(place: number): Promise<AdmissionOperation | undefined> {
    const id = this.#ids.get(place)
    return id === undefined ? undefined : this.world.store.findOperation(id)
  }

  /** The transitions of a nonce are those that its operation's state permits, each beside one line of its history. */
  async #compareNonce(operation: AdmissionOperation, history: readonly HistoryLine[]): Promise<void> {
    const { operationId, state } = operation
    const rows = await this.world.tables.transaction('nonce', move => move.nonces.transitions(operationId))
    const permitted =
      state === 'ready_to_dispatch'
        ? []
        : state === 'compensated_before_dispatch'
          ? ['cancelled']
          : ['capture_pending', 'committed']
    expect(rows.map(({ kind }) => kind)).toEqual(permitted)
    for (const { bytes, kind, participantDigest, recordedAtUnixMs, reservationDigest, version } of rows) {
      const retained = decodeAdmissionOperation(bytes)
      const line = history.find(each => each.version === version)
      expect(line).toMatchObject({ recordedAtUnixMs, to: retained.state })
      expect(retained.version).toBe(version)
      expect(participantDigest === null).toBe(kind === 'cancelled')
      if (kind !== 'capture_pending') continue
      const prepared = {
        operation_digest: sha256Hex(bytes),
        recorded_at_unix_ms: recordedAtUnixMs,
        reservation_digest: reservationDigest,
      }
      expect(participantDigest).toBe(preparationDigest(prepared))
    }
  }

  async compare(): Promise<void> {
    const { model, world } = this
    const seen = await Promise.all(
      [...model.operations].map(async ([place, expected]) => {
        const operation = await this.#operation(place)
        const { history } = await world.store.readRecord(operation as AdmissionOperation)
        expect(history.map(({ version }) => version)).toEqual(history.map((_, index) => index + 1))
        expect(history.at(-1)).toMatchObject({ to: operation?.state, version: operation?.version })
        await this.#compareNonce(operation as AdmissionOperation, history)
        return [place, operation?.state, expected.state]
      }),
    )
    expect(seen.map(([place, state]) => [place, state])).toEqual(
      seen.map(([place, , state]) => [place, state]),
    )
    const { captured, held } = model
    expect(await world.store.findGrant(world.grant.grantId)).toMatchObject({ captured, held })
    const counted = await world.store.countByState()
    expect(counted.reduce((sum, { count }) => sum + count, 0)).toBe(model.operations.size)
    expect(await world.tables.transaction('count', move => move.head.liveNonces)).toBe(held)
  }
}

const FRESH = ({ clock }: AdmissionWorld) => ({
  proofIssuedAtUnixSeconds: Math.floor(clock.unixMs() / 1_000),
})

let crashes = 0
let commands = 0

test(
  'the store does what the model does, through every sequence of commands, crashes and reopenings',
  async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 40 }), async steps => {
        const driver = new Driver(
          await AdmissionWorld.make({ capacity: CAPACITY, maximumExecutions: MAXIMUM }),
        )
        try {
          for (const { command: given, crash: crashed } of steps) await driver.take(given, crashed)
          crashes += driver.crashes
          commands += steps.length
        } finally {
          driver.world.remove()
        }
      }),
      { numRuns: fullCount(8, 1_000), endOnFailure: false },
    )
    // A sequence without a crash would prove nothing about one.
    expect(crashes).toBeGreaterThan(0)
    expect(commands).toBeGreaterThan(100)
  },
  FULL_RUN_TIMEOUT_MS * 15,
)
