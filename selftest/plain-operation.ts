// Owns the steps of one brokered operation as a host takes them, each alone, for whoever times them or breaks off
// between them. The tool's part is played in this process: the prepared stream is submitted where it was prepared.
// Must never: leave a step out that a host needs.
import { type RecordedOutcome, readOutcome, verifyOutcome } from '../client/outcome.js'
import { prepareDispatchConnection } from '../client/prepare.js'
import type { PreparedStream } from '../client/prepared-stream.js'
import { type AdmittedOperation, authorize, buildRequest, reserve } from '../host/admission.js'
import type { HostSession } from '../host/session.js'
import type { Grant } from '../protocol/grant.js'
import { deadlineAfter } from '../system/deadline.js'

/** Longer than any outcome takes that is recorded at all. */
const BUDGET_MS = 20_000

/** A host, and the grant that it uses. */
export interface GrantedHost {
  readonly session: HostSession
  readonly grant: Grant
  /** The grant's own unless said. */
  readonly timeoutMs?: number
}

/** Times one step under its name; the default takes no notice. */
export type StepTimer = <T>(name: string, step: () => Promise<T>) => Promise<T>
export const untimed: StepTimer = (_name, step) => step()

/** Steps 1 and 2: reserved, signed, authorized, registered. */
export async function admit(
  { session, grant, timeoutMs = grant.maximumTimeoutMs }: GrantedHost,
  body: Uint8Array,
  timed: StepTimer = untimed,
): Promise<AdmittedOperation> {
  const request = buildRequest(grant, { grantId: grant.grantId, body, headers: [], timeoutMs })
  const reservation = await timed('reserve', () => reserve(session, request, grant.grantId))
  const admitted = await timed('authorize', () => authorize(session, reservation))
  await timed('register', () => session.broker.register(admitted.register))
  return admitted
}

/** Step 3. @throws BrokerError `conflict` while another operation holds the slot. */
export async function prepare(
  { session }: Pick<GrantedHost, 'session'>,
  admitted: AdmittedOperation,
): Promise<PreparedStream> {
  const { stream } = await prepareDispatchConnection(session.pins.broker, admitted.prepare, session.clock)
  return stream
}

/** Step 4. */
export async function start(
  { session }: Pick<GrantedHost, 'session'>,
  admitted: AdmittedOperation,
): Promise<void> {
  const { executionNonce, operationId } = admitted
  await session.kernel.call('start', { executionNonce, operationId })
}

/** Steps 5 to 7 as the tool sees them: frame written, response read. */
export function submit(
  { session }: Pick<GrantedHost, 'session'>,
  stream: PreparedStream,
): ReturnType<PreparedStream['submit']> {
  return stream.submit(deadlineAfter(session.clock, BUDGET_MS))
}

/** What a tool read, judged as a host judges it. */
export function judged(
  admitted: AdmittedOperation,
  { response, frame }: Awaited<ReturnType<typeof submit>>,
): RecordedOutcome {
  return verifyOutcome(response, frame, admitted.context)
}

/** Step 8, first half: the broker's own record. */
export function recordOf(
  { session }: Pick<GrantedHost, 'session'>,
  admitted: AdmittedOperation,
): Promise<RecordedOutcome> {
  return readOutcome(session.broker, admitted.context, BUDGET_MS)
}
