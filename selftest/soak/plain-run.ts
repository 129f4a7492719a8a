// Owns runs without a cage: the tool's part is played in the host's own process, as it should be or in one of the
// ways in which it is refused. What ends badly is settled as a host settles it.
// Must never: start, prepare or submit one operation a second time.
import { setTimeout as sleep } from 'node:timers/promises'
import type { PreparedStream } from '../../client/prepared-stream.js'
import { type AdmittedOperation, readGrant } from '../../host/admission.js'
import type { HostSession } from '../../host/session.js'
import { finalize, isSigned, settledBy, settledError, type SignedOutcome } from '../../host/settlement.js'
import { closeDescriptor, writeFully } from '../../native/index.js'
import type { Clock } from '../../protocol/clock.js'
import { BrokerError, isBrokerError } from '../../protocol/errors.js'
import type { Grant } from '../../protocol/grant.js'
import { deadlineAfter, hasPassed } from '../../system/deadline.js'
import { type Told, toldByError, toldByRun } from '../crash/told.js'
import * as plain from '../plain-operation.js'

/** `submitted` is the main job; each other one is refused: nothing of it reaches the provider. */
export const PLAIN_WAYS = ['submitted', 'abandoned', 'altered', 'halved', 'unstarted'] as const
export type PlainWay = (typeof PLAIN_WAYS)[number]

export interface PlainRun {
  readonly grantId: string
  readonly body: string
  readonly way: PlainWay
  readonly timeoutMs: number
  readonly waitForSlotMs: number
}

const WRITE_MS = 2_000
const SLOT_PAUSE_MS = 10

/** @returns what the host was told. Rejects for nothing. */
export async function runPlain(session: HostSession, run: PlainRun): Promise<Told> {
  try {
    const grant = await grantOf(session, run.grantId)
    const admitted = await plain.admit({ session, grant, timeoutMs: run.timeoutMs }, Buffer.from(run.body))
    return toldByRun({ outcome: await executePlain(session, admitted, run) })
  } catch (error) {
    return toldByError(error)
  }
}

const grants = new Map<string, Grant>()

/** Read once a process, as a host does that keeps it. */
async function grantOf(session: HostSession, grantId: string): Promise<Grant> {
  const known = grants.get(grantId)
  if (known !== undefined) return known
  const { grant } = await readGrant(session, grantId)
  grants.set(grantId, grant)
  return grant
}

async function executePlain(
  session: HostSession,
  admitted: AdmittedOperation,
  { way, waitForSlotMs }: PlainRun,
): Promise<SignedOutcome> {
  let stream: PreparedStream | undefined
  let isStarted = false
  let taken: SignedOutcome | undefined
  try {
    stream = await preparedWithin(session, admitted, waitForSlotMs)
    if (way !== 'unstarted' && way !== 'abandoned') {
      isStarted = true
      await plain.start({ session }, admitted)
    }
    await playTool(session, stream, way)
    const outcome = await plain.recordOf({ session }, admitted)
    if (!isSigned(outcome)) throw new BrokerError('outcome_undetermined', `no record yet: ${outcome.kind}`)
    taken = outcome
    await finalize(session, admitted.operationId, outcome)
    return outcome
  } catch (error) {
    stream?.close()
    if (taken === undefined) throw await settledError(session, admitted, error, isStarted)
    if (isBrokerError(error) && error.code === 'kernel_unavailable') return taken
    throw settledBy(error, admitted.operationId, taken)
  }
}

async function preparedWithin(
  session: HostSession,
  admitted: AdmittedOperation,
  waitMs: number,
): Promise<PreparedStream> {
  const deadlineBootNs = deadlineAfter(session.clock, waitMs)
  for (;;) {
    try {
      return await plain.prepare({ session }, admitted)
    } catch (error) {
      const isHeld = isBrokerError(error) && error.code === 'conflict'
      if (!isHeld || hasPassed(session.clock, deadlineBootNs)) throw error
      await sleep(SLOT_PAUSE_MS)
    }
  }
}

/** What a tool does with descriptor 8; whatever comes of it, the record is asked for. */
async function playTool(session: HostSession, stream: PreparedStream, way: PlainWay): Promise<void> {
  if (way === 'abandoned') return stream.close()
  if (way === 'altered' || way === 'halved') return misuse(session.clock, stream, way)
  try {
    await plain.submit({ session }, stream)
  } catch (error) {
    if (!isBrokerError(error) || error.code !== 'outcome_undetermined') throw error
  }
}

async function misuse(clock: Clock, stream: PreparedStream, way: 'altered' | 'halved'): Promise<void> {
  const frame = Uint8Array.from(stream.frame)
  const last = frame.length - 1
  frame[last] = (frame[last] ?? 0) ^ 1
  const bytes = way === 'halved' ? frame.subarray(0, last >> 1) : frame
  const descriptor = stream.takeDescriptor()
  try {
    await writeFully(descriptor, bytes, deadlineAfter(clock, WRITE_MS))
  } catch {
    // The broker may close before the last byte: that is its right.
  } finally {
    closeDescriptor(descriptor)
  }
}
