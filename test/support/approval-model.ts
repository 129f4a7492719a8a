// Owns the plain model of waiting for approvals that random command sequences are compared with: who agreed until when,
// what stands then, and what every command answers. It knows no SQL, no commit and no signature.
import type { ApproverName } from './approvers.js'

export type ApprovalCommand =
  | { readonly kind: 'ask' | 'cancel'; readonly at: number }
  | {
      readonly kind: 'say'
      readonly at: number
      readonly who: ApproverName
      readonly decision: 'approved' | 'denied'
      readonly lifeSeconds: number
    }
  | { readonly kind: 'pass'; readonly seconds: number }
  | { readonly kind: 'reopen' }

type State = 'approval_required' | 'approval_reserved' | 'compensated_before_dispatch' | 'ready_to_dispatch'

export interface WaitingOperation {
  state: State
  readonly deadline: number
  /** Until when each approver's word counts. */
  readonly agreed: Map<ApproverName, number>
  words: number
  expiresAt: number
}

export const REQUIRED = 2
const WAITS_SECONDS = 900
const NONCE_SECONDS = 30

export class ApprovalModel {
  readonly operations = new Map<number, WaitingOperation>()
  now = 0
  readonly #maximum: number
  readonly #capacity: number

  constructor(maximum: number, capacity: number) {
    this.#maximum = maximum
    this.#capacity = capacity
  }

  get held(): number {
    return this.#count(state => state !== 'compensated_before_dispatch')
  }

  get nonces(): number {
    return this.#count(state => state === 'ready_to_dispatch')
  }

  /** @returns `ok`, or the code of the refusal; a refusal changes nothing. */
  run(command: ApprovalCommand): string {
    switch (command.kind) {
      case 'pass':
        this.now += command.seconds
        return 'ok'
      case 'reopen':
        return this.#recover()
      case 'ask':
        return this.#ask(command.at)
      case 'cancel':
        return this.#cancel(command.at)
      case 'say':
        return this.#say(command)
    }
  }

  #ask(at: number): string {
    const operation = this.operations.get(at)
    if (operation?.state === 'approval_reserved') return this.#answer(operation)
    if (operation !== undefined) return 'ok'
    if (this.held >= this.#maximum) return 'grant_exhausted'
    const deadline = this.now + WAITS_SECONDS
    this.operations.set(at, {
      agreed: new Map(),
      deadline,
      expiresAt: 0,
      state: 'approval_required',
      words: 0,
    })
    return 'ok'
  }

  #answer(operation: WaitingOperation): string {
    if (this.now >= operation.deadline || this.#live(operation) < REQUIRED) return 'approval_expired'
    if (this.nonces >= this.#capacity) return 'execution_nonce_capacity'
    operation.state = 'ready_to_dispatch'
    operation.expiresAt = this.now + NONCE_SECONDS
    return 'ok'
  }

  #say({ at, decision, lifeSeconds, who }: Extract<ApprovalCommand, { kind: 'say' }>): string {
    const operation = this.operations.get(at)
    if (operation === undefined) return 'ok'
    if (this.now >= operation.deadline) return 'authorization_denied'
    if (operation.state !== 'approval_required') return 'operation_state'
    const isLive = (operation.agreed.get(who) ?? 0) > this.now
    if (decision === 'approved' && isLive) return 'approval_repeated'
    operation.words += 1
    if (decision === 'denied') operation.state = 'compensated_before_dispatch'
    else operation.agreed.set(who, Math.min(this.now + lifeSeconds, operation.deadline))
    if (decision === 'approved' && this.#live(operation) >= REQUIRED) operation.state = 'approval_reserved'
    return 'ok'
  }

  #cancel(at: number): string {
    const operation = this.operations.get(at)
    if (operation !== undefined) operation.state = 'compensated_before_dispatch'
    return 'ok'
  }

  /** What waits lives to its deadline, what is ready to the end of its nonce. */
  #recover(): string {
    for (const operation of this.operations.values()) {
      const { deadline, expiresAt, state } = operation
      const end = state === 'ready_to_dispatch' ? expiresAt : deadline
      if (this.now >= end) operation.state = 'compensated_before_dispatch'
    }
    return 'ok'
  }

  #live({ agreed }: WaitingOperation): number {
    return [...agreed.values()].filter(until => until > this.now).length
  }

  #count(holds: (state: State) => boolean): number {
    return [...this.operations.values()].filter(({ state }) => holds(state)).length
  }
}
