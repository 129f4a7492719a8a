// Owns the plain model of the admission store that random command sequences are compared with: what every command
// answers and what stands afterwards, in a few lines that a person can check. It knows no SQL, no commit and no file.
import type { AdmissionState } from '../../protocol/admission-states.js'
import type { RecordName } from './admission-world.js'

export type Command =
  | { readonly kind: 'cancel' | 'change' | 'reserve' | 'retain' | 'settle' | 'start'; readonly at: number }
  | { readonly kind: 'cross'; readonly at: number; readonly other: number }
  | { readonly kind: 'finalize'; readonly at: number; readonly record: RecordName }
  | { readonly kind: 'pass'; readonly seconds: number }
  | { readonly kind: 'reopen' }

export interface ModelOperation {
  state: AdmissionState
  isRegistered: boolean
  epoch: number
  expiresAt: number
  record: RecordName | null
}

const BEFORE: readonly AdmissionState[] = ['ready_to_dispatch']
const ENDS: Readonly<Record<RecordName, AdmissionState>> = {
  committed: 'denied_after_delivery',
  not_started: 'not_accepted_after_dispatch_commit',
  receipt: 'completed',
  unknown: 'outcome_unknown_after_dispatch',
}
/** Ended without a record: only one that says that nothing was sent agrees. */
const UNSENT: readonly AdmissionState[] = [
  'compensated_before_dispatch',
  'not_accepted_after_dispatch_commit',
]

export class AdmissionModel {
  readonly operations = new Map<number, ModelOperation>()
  epoch = 1
  now = 0
  readonly #maximum: number
  readonly #capacity: number

  constructor(maximum: number, capacity: number) {
    this.#maximum = maximum
    this.#capacity = capacity
  }

  get held(): number {
    return this.#count(BEFORE)
  }

  get captured(): number {
    return [...this.operations.values()].filter(
      ({ state }) => !BEFORE.includes(state) && state !== 'compensated_before_dispatch',
    ).length
  }

  /** @returns `ok`, or the code of the refusal; a refusal changes nothing. */
  run(command: Command): string {
    switch (command.kind) {
      case 'pass':
        this.now += command.seconds
        return 'ok'
      case 'reopen':
        return this.#recover()
      case 'reserve':
        return this.operations.has(command.at) ? 'ok' : this.#reserve(command.at)
      case 'change':
        return this.operations.has(command.at) ? 'request_binding_mismatch' : 'ok'
      default:
        return this.#move(command)
    }
  }

  #reserve(at: number): string {
    if (this.held + this.captured >= this.#maximum) return 'grant_exhausted'
    if (this.held >= this.#capacity) return 'execution_nonce_capacity'
    const state = 'ready_to_dispatch'
    const { epoch, now } = this
    this.operations.set(at, { state, isRegistered: false, epoch, expiresAt: now + 30, record: null })
    return 'ok'
  }

  #move(command: Exclude<Command, { kind: 'change' | 'pass' | 'reopen' | 'reserve' }>): string {
    const operation = this.operations.get(command.at)
    if (operation === undefined) return 'ok'
    switch (command.kind) {
      case 'retain':
        if (operation.state !== 'ready_to_dispatch') return 'operation_state'
        operation.isRegistered = true
        return 'ok'
      case 'start':
        return this.#start(operation, true)
      case 'cross':
        return this.operations.has(command.other)
          ? this.#start(operation, command.other === command.at)
          : 'ok'
      case 'cancel':
        if (operation.state === 'compensated_before_dispatch') return 'ok'
        return this.#end(operation, BEFORE, 'compensated_before_dispatch')
      case 'settle':
        return this.#end(operation, ['dispatch_committed'], 'not_accepted_after_dispatch_commit')
      case 'finalize':
        return this.#finalize(operation, command.record)
      default:
        return 'unknown command'
    }
  }

  #start(operation: ModelOperation, isOwnNonce: boolean): string {
    if (operation.state === 'compensated_before_dispatch') return 'operation_state'
    if (operation.state !== 'ready_to_dispatch') return 'ok'
    if (!operation.isRegistered) return 'operation_state'
    if (!isOwnNonce) return 'execution_nonce_binding'
    if (operation.epoch !== this.epoch) return 'execution_nonce_not_adopted'
    if (this.now >= operation.expiresAt) return 'execution_nonce_expired'
    operation.state = 'dispatch_committed'
    return 'ok'
  }

  #end(operation: ModelOperation, from: readonly AdmissionState[], to: AdmissionState): string {
    if (!from.includes(operation.state)) return 'operation_state'
    operation.state = to
    return 'ok'
  }

  #finalize(operation: ModelOperation, record: RecordName): string {
    const { record: known, state } = operation
    if (state === 'ready_to_dispatch') {
      if (record !== 'not_started') return 'conflict'
      operation.state = 'compensated_before_dispatch'
    } else if (state === 'dispatch_committed') {
      operation.state = ENDS[record]
    } else {
      const isSame = known === null ? UNSENT.includes(state) && record === 'not_started' : known === record
      return isSame ? 'ok' : 'conflict'
    }
    operation.record = record
    return 'ok'
  }

  #recover(): string {
    this.epoch += 1
    for (const operation of this.operations.values()) {
      if (operation.state !== 'ready_to_dispatch') continue
      if (this.now < operation.expiresAt) operation.epoch = this.epoch
      else if (!operation.isRegistered) operation.state = 'compensated_before_dispatch'
    }
    return 'ok'
  }

  #count(states: readonly AdmissionState[]): number {
    return [...this.operations.values()].filter(({ state }) => states.includes(state)).length
  }
}
