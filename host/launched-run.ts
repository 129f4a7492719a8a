// A run whose server is kept waiting for its call: the stream is handed over before the start, the host speaks with the
// server as it likes, starts when it is about to call, and takes the outcome from the broker. Until the start is
// committed a frame that the server submits is refused and ends the attempt; a start that is denied kills the cage.
import type { Writable } from 'node:stream'
import { openCage, type WaitingCage } from '../cage/index.js'
import { encode } from '../protocol/codec.js'
import { BrokerError } from '../protocol/errors.js'
import { BrokerExecuteRequest } from '../protocol/execute-request.js'
import { parseStrictJson } from '../protocol/json.js'
import type { JsonMembers } from '../client/mcp-message.js'
import { assertInputPipe, type BrokeredRunRequest } from './brokered-run.js'
import { assertCallFits } from './mcp-call.js'
import { checkAnswer } from './mcp-reply.js'
import { prepareRun, type PreparedRun } from './prepared-run.js'
import {
  type BrokeredRun,
  endRun,
  handOff,
  type HandedOver,
  type RunState,
  settling,
  startOperation,
} from './run-steps.js'
import type { HostSession } from './session.js'
import { Timeline } from './timeline.js'

/** What a server says on one of its outputs, chunk by chunk; the first MiB is kept for the record. */
export interface ServerOutput {
  onChunk(listener: (chunk: Uint8Array) => void): void
  readonly ended: Promise<void>
}

/** As a run, without what speaks MCP: the host does. */
export type LaunchRequest = Omit<BrokeredRunRequest, 'mcp'>

/**
 * Prepares an operation, hands its stream to a server, and leaves the server running. Not started yet.
 * @throws BrokerError `not_started`: nothing was dispatched, and the operation was released.
 */
export async function launchBrokered(session: HostSession, request: LaunchRequest): Promise<LaunchedRun> {
  assertInputPipe(request.cage)
  const timeline = new Timeline(session.clock, session.atMoment)
  const opening = timeline.step('cage', () => openCage(request.cage))
  opening.catch(() => undefined)
  try {
    const run = await prepareRun(session, request, timeline)
    const state: RunState = { isStarted: false, taken: null }
    return await settling(run, state, async () => {
      request.onProgress?.({ operationId: run.admitted.operationId, isStarted: false })
      assertCallFits(run.admitted.context.request)
      const cage = await opening
      return new LaunchedRun({ run, state, request, cage, handed: await handOff(run, cage) })
    })
  } catch (error) {
    await opening.then(cage => cage.close()).catch(() => undefined)
    throw error
  }
}

interface LaunchedParts {
  readonly run: PreparedRun
  readonly state: RunState
  readonly request: LaunchRequest
  readonly cage: WaitingCage
  readonly handed: HandedOver
}

/** One server in its cage, before and after its start. `finish` or `close` ends it. */
export class LaunchedRun {
  readonly operationId: string
  readonly attemptId: string
  readonly #parts: LaunchedParts
  #isEnding = false

  constructor(parts: LaunchedParts) {
    this.#parts = parts
    this.operationId = parts.run.admitted.operationId
    this.attemptId = parts.run.admitted.attemptId
  }

  /** The server's standard input. */
  get input(): Writable {
    return this.#parts.handed.running.input as Writable
  }

  get stdout(): ServerOutput {
    return this.#parts.handed.running.stdout
  }

  get stderr(): ServerOutput {
    return this.#parts.handed.running.stderr
  }

  /** What goes into `arguments` of the server's `tools/call`: the exact execute request. */
  get callArguments(): JsonMembers {
    const { request } = this.#parts.run.admitted.context
    return parseStrictJson(encode(BrokerExecuteRequest, request), 'execute request') as JsonMembers
  }

  /**
   * Commits the start; to be awaited before `tools/call` is sent. Once.
   * @throws BrokerError when it was denied or its answer was lost: the cage is killed and the operation settled.
   */
  async start(): Promise<void> {
    const { run, state, request } = this.#parts
    if (state.isStarted || this.#isEnding) throw consumed('start', 'a run that waits for its start')
    try {
      await settling(run, state, () => startOperation(run, state, request))
    } catch (error) {
      this.#isEnding = true
      await this.#endCage()
      throw error
    }
  }

  /** Throws unless a result of `tools/call` is the broker's own answer to this request. Never the outcome. */
  assertAnswer(result: JsonMembers): void {
    const { admitted, session } = this.#parts.run
    checkAnswer(result, { context: admitted.context, clock: session.clock })
  }

  /**
   * Takes the outcome from the broker, then waits for the server's end within the grace.
   * @throws BrokerError as `runBrokered` does.
   */
  async finish(): Promise<BrokeredRun> {
    const { run, state, request, handed } = this.#parts
    if (!state.isStarted || this.#isEnding)
      throw consumed('finish', 'a run that was started and is not ended')
    this.#isEnding = true
    try {
      const { toolGraceMs } = request
      return await settling(run, state, () => endRun(run, state, { ...handed, call: null, toolGraceMs }))
    } finally {
      await this.#endCage()
    }
  }

  /** Gives a run up: kills the server, and releases an operation that was not started. Safe after any end. */
  async close(): Promise<void> {
    const { run, state } = this.#parts
    const isEnded = this.#isEnding
    this.#isEnding = true
    await this.#endCage()
    if (isEnded) return
    const givenUp = new BrokerError('interrupted', 'run given up')
    await settling(run, state, () => Promise.reject(givenUp)).catch(() => undefined)
  }

  async #endCage(): Promise<void> {
    await this.#parts.cage.close().catch(() => undefined)
  }
}

function consumed(what: string, expected: string): BrokerError {
  return new BrokerError('prepared_stream_consumed', `${what} refused: expected ${expected}, got another`)
}
