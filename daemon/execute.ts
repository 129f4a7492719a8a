// Owns the way from the exact frame to the end of the stream: current authority, a live provider connection, the
// commit, the exchange, the recorded end, and last the answer.
// Must never: decrypt before the commit, send twice, or write an answer whose record is not on disk.
// Source: the broker protocol, section 8.4.
import type { BrokerExecuteFailure } from '../protocol/failure.js'
import type { SignedExecutionReceipt } from '../protocol/receipt.js'
import { findAttempt } from './attempts.js'
import { completedFrame, failureFrame } from './answers.js'
import { currentCapture } from './consumption.js'
import { bootNsAfter } from './deadline.js'
import { commitPrepared, type Dispatch } from './dispatch-commit.js'
import { faultFields } from './log.js'
import { type ExchangeEnding, runProviderExchange } from './provider-exchange.js'
import type { BrokerParts } from './parts.js'
import type { Preparation, PreparedTerms } from './preparation.js'
import { signExecution } from './receipts.js'
import type { Recording } from './recorder.js'
import { recordedFrame } from './replay.js'
import { refusedBy } from './refused-by.js'
import { refusalRow, type RefusalReason } from './refusals.js'
import { namesOf } from './slot-desk.js'
import type { StoredResponse } from './stored-responses.js'
import { within } from './within.js'

/** What a replay and a stream still wait for a record after the provider's deadline. */
const RECORD_GRACE_MS = 1_000

export async function executePrepared(
  parts: BrokerParts,
  preparation: Preparation,
  terms: PreparedTerms,
): Promise<void> {
  let dispatch: Dispatch
  try {
    dispatch = await dispatchOf(parts, preparation, terms)
  } catch (error) {
    await answerRefusal(parts, preparation, error)
    return
  }
  await conclude(parts, preparation, dispatch)
}

async function dispatchOf(
  parts: BrokerParts,
  preparation: Preparation,
  terms: PreparedTerms,
): Promise<Dispatch> {
  const asking = preparation.orEnded(currentCapture(parts, preparation, terms))
  parts.atCutpoint('capture.asked')
  const capture = await asking
  parts.atCutpoint('capture.told')
  const { provider } = preparation
  if (provider === undefined) throw new TypeError('prepared provider: expected one, got none')
  preparation.awaitsProvider = true
  const connection = await preparation.orEnded(provider.alive())
  preparation.awaitsProvider = false
  return commitPrepared(parts, preparation, { terms, capture, connection })
}

/** After the exact frame every refusal is the signed failure, written once its record is on disk. */
async function answerRefusal(parts: BrokerParts, preparation: Preparation, error: unknown): Promise<void> {
  const recording = parts.desk.end(preparation, refusedBy(error, 'consumption')) ?? preparation.recording
  const reason = preparation.endedBy?.reason
  if (reason === 'duplicate_state') return answerDuplicate(parts, preparation)
  if (recording === undefined || reason === undefined || refusalRow(reason).silent === true) return
  await answerFailure(parts, preparation, recording)
}

/** The attempt has another end already: that one is what its stream gets, as every replay does. */
async function answerDuplicate(parts: BrokerParts, preparation: Preparation): Promise<void> {
  const attempt = findAttempt(parts.store, preparation.attemptId)
  if (attempt?.receiptReference == null) return
  const recording = { tried: Promise.resolve(), durable: Promise.resolve(attempt) }
  await answer(parts, preparation, recording, recorded => recordedFrame(parts, recorded))
}

async function conclude(parts: BrokerParts, preparation: Preparation, dispatch: Dispatch): Promise<void> {
  const ending = await runProviderExchange(parts, dispatch)
  parts.atCutpoint('provider_answered')
  if (ending.kind === 'response') await concludeResponse(parts, preparation, dispatch, ending.response)
  else await concludeFailure(parts, preparation, dispatch, ending)
}

async function concludeResponse(
  parts: BrokerParts,
  preparation: Preparation,
  dispatch: Dispatch,
  response: StoredResponse,
): Promise<void> {
  const { registration } = preparation.candidate
  const execution = { request: dispatch.terms.request, registration, captured: dispatch.captured }
  const issuedAtUnixSeconds = Math.floor(dispatch.committedAtUnixMs / 1000)
  const receipt = signExecution(
    execution,
    response,
    Math.max(issuedAtUnixSeconds, Math.floor(parts.clock.unixMs() / 1000)),
    parts.receiptKey,
  )
  const recording = parts.recorder.complete(dispatch.attempt, response, receipt)
  await finishWith(parts, preparation, recording, 'completed')
  parts.log.info(
    { ...namesOf(preparation), status: response.status, responseBytes: response.body.length },
    'execution completed',
  )
  await answer(parts, preparation, recording, (signed: SignedExecutionReceipt) =>
    completedFrame(response, signed),
  )
}

async function concludeFailure(
  parts: BrokerParts,
  preparation: Preparation,
  dispatch: Dispatch,
  ending: Exclude<ExchangeEnding, { kind: 'response' }>,
): Promise<void> {
  const recording = parts.recorder.fail(dispatch.attempt, { reason: ending.reason, progress: 'committed' })
  await finishWith(parts, preparation, recording, ending.reason)
  parts.log.warn(
    { ...namesOf(preparation), reason: ending.reason, ...faultFields(ending.error) },
    'execution ended',
  )
  await answerFailure(parts, preparation, recording)
}

/** The recorded end frees the slot, before the answer is written; so does one that the disk refused. */
async function finishWith(
  parts: BrokerParts,
  preparation: Preparation,
  recording: Recording<unknown>,
  reason: RefusalReason | 'completed',
): Promise<void> {
  recording.durable.then(
    () => preparation.settle(),
    () => preparation.settle(),
  )
  await recording.tried
  parts.desk.finish(preparation, reason)
}

function answerFailure(
  parts: BrokerParts,
  preparation: Preparation,
  recording: Recording<BrokerExecuteFailure>,
): Promise<void> {
  return answer(parts, preparation, recording, async failure => failureFrame(failure))
}

/** Writes the answer under its own budget, if its record is on disk; a tool that is gone loses nothing but it. */
async function answer<T>(
  parts: BrokerParts,
  preparation: Preparation,
  recording: Recording<T>,
  frameOf: (recorded: T) => Promise<Uint8Array>,
): Promise<void> {
  const { clock, config, log } = parts
  const { connection } = preparation.candidate
  try {
    const recorded = await within(recording.durable, clock, bootNsAfter(clock, RECORD_GRACE_MS))
    if (recorded === undefined || connection.ending !== undefined) return
    const frame = await frameOf(recorded)
    await connection.writeFrame(frame, bootNsAfter(clock, config.writeTimeoutMs))
    parts.atCutpoint('response_written')
  } catch (error) {
    log.warn({ ...namesOf(preparation), ...faultFields(error) }, 'answer not delivered; the record stands')
  }
}
