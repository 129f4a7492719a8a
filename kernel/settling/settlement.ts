// Owns: the settling of operations while the kernel runs and when it starts: each at its own deadline.
// Must never: hold a request up, stop because one operation fails, or trust a timer more than the boot clock.
// Source: the kernel's settling rules; clock_gettime(2) CLOCK_BOOTTIME.
import { NS_PER_MS } from '../../protocol/clock.js'
import { isBrokerError } from '../../protocol/errors.js'
import { deadlineAfter } from '../../system/deadline.js'
import { faultFields } from '../fault-fields.js'
import type { KernelContext } from '../kernel-context.js'
import type { AdmissionOperation } from '../operation/operation.js'
import { settleOperation, type WaitReason } from './settle-operation.js'
import { dueInMs, waitsForExecutor } from './settlement-deadline.js'

/** A machine that slept is noticed within this; nothing ticks while no operation is open. */
const LONGEST_TIMER_MS = 250
/** Questions to the broker at a time: it serves hosts first. */
const MAXIMUM_AT_ONCE = 4
/** Between two questions about an operation that could not be settled. */
const FIRST_WAIT_MS = 500
const LONGEST_WAIT_MS = 5_000

/** The boot clock decides; the wall clock's word is for whoever asks when. */
interface Due {
  readonly bootNs: bigint
  readonly unixMs: number
}

interface Waiting {
  readonly reason: WaitReason
  readonly tries: number
}

export class Settlement {
  readonly #context: KernelContext
  readonly #due = new Map<string, Due>()
  readonly #queue: string[] = []
  readonly #waiting = new Map<string, Waiting>()
  readonly #running = new Set<Promise<void>>()
  #timer: NodeJS.Timeout | undefined
  #timerBootNs: bigint | undefined
  #closed = false

  constructor(context: KernelContext) {
    this.#context = context
  }

  /** Operations that could not be settled yet. */
  get waiting(): number {
    return this.#waiting.size
  }

  /** Takes up everything that an earlier process left open. */
  async start(): Promise<void> {
    for (const operation of await this.#context.store.openOperations()) this.schedule(operation)
  }

  /** Notes when an open operation is due; the latest word counts. */
  schedule(operation: AdmissionOperation): void {
    if (waitsForExecutor(operation)) return this.forget(operation.operationId)
    this.#at(operation.operationId, dueInMs(operation, this.#context.clock.unixMs()))
  }

  /** The operation has ended. */
  forget(operationId: string): void {
    this.#due.delete(operationId)
    this.#waiting.delete(operationId)
  }

  /** Why it waits, and when the kernel looks at it next. */
  outlook(operationId: string): {
    readonly reason: WaitReason | null
    readonly settlesAtUnixMs: number | null
  } {
    return {
      reason: this.#waiting.get(operationId)?.reason ?? null,
      settlesAtUnixMs: this.#due.get(operationId)?.unixMs ?? null,
    }
  }

  /** Stops looking and waits for what is being asked. */
  async close(): Promise<void> {
    this.#closed = true
    clearTimeout(this.#timer)
    await Promise.allSettled(this.#running)
  }

  #at(operationId: string, afterMs: number): void {
    const { clock } = this.#context
    const bootNs = deadlineAfter(clock, afterMs)
    this.#due.set(operationId, { bootNs, unixMs: clock.unixMs() + Math.ceil(afterMs) })
    if (this.#timerBootNs === undefined || bootNs < this.#timerBootNs) this.#arm(bootNs)
  }

  #arm(dueBootNs: bigint): void {
    if (this.#closed) return
    clearTimeout(this.#timer)
    const leftMs = Number((dueBootNs - this.#context.clock.bootNs()) / NS_PER_MS) + 1
    this.#timerBootNs = dueBootNs
    this.#timer = setTimeout(() => this.#look(), Math.min(Math.max(leftMs, 0), LONGEST_TIMER_MS))
  }

  #look(): void {
    const nowBootNs = this.#context.clock.bootNs()
    this.#timerBootNs = undefined
    let nextBootNs: bigint | undefined
    for (const [operationId, { bootNs }] of this.#due) {
      if (bootNs <= nowBootNs) this.#take(operationId)
      else if (nextBootNs === undefined || bootNs < nextBootNs) nextBootNs = bootNs
    }
    if (nextBootNs !== undefined) this.#arm(nextBootNs)
    this.#drain()
  }

  #take(operationId: string): void {
    this.#due.delete(operationId)
    this.#queue.push(operationId)
  }

  #drain(): void {
    while (!this.#closed && this.#running.size < MAXIMUM_AT_ONCE) {
      const operationId = this.#queue.shift()
      if (operationId === undefined) return
      const run = this.#settle(operationId).finally(() => {
        this.#running.delete(run)
        this.#drain()
      })
      this.#running.add(run)
    }
  }

  async #settle(operationId: string): Promise<void> {
    try {
      const settled = await settleOperation(this.#context, operationId)
      if (settled.kind === 'again') return this.#again(operationId, settled.reason, settled.afterMs)
      this.forget(operationId)
      this.#context.log({ level: 'info', event: 'operation_settled', operationId })
    } catch (error) {
      await this.#settleLater(operationId, error)
    }
  }

  /** Its host may have moved it on meanwhile: then its new deadline counts. */
  async #settleLater(operationId: string, error: unknown): Promise<void> {
    const moved = isBrokerError(error) && error.code === 'operation_state'
    const operation = moved ? await this.#context.store.findOperation(operationId) : undefined
    if (operation !== undefined) return this.schedule(operation)
    this.#context.log({ level: 'error', event: 'settlement_failed', operationId, ...faultFields(error) })
    this.#again(operationId, this.#waiting.get(operationId)?.reason ?? 'attempt_pending')
  }

  #again(operationId: string, reason: WaitReason, afterMs?: number): void {
    const tries = (this.#waiting.get(operationId)?.tries ?? 0) + 1
    this.#waiting.set(operationId, { reason, tries })
    this.#context.log({ level: 'warn', event: 'operation_waits', operationId, reason, tries })
    this.#at(operationId, afterMs ?? Math.min(FIRST_WAIT_MS * 2 ** Math.min(tries - 1, 10), LONGEST_WAIT_MS))
  }
}
