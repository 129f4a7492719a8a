// Owns the request of one note as the host keeps it, and what the host expects to be executed for it: derived from this
// request alone, so that an authorization that comes later cannot choose it.
// Must never: be replaced by a request with another text.
// Source: "retains the complete request, then asks the kernel to reserve it"; the expected invocation of the executor.
import { mkdirSync } from 'node:fs'
import { expectedInvocation } from '../../kernel/calls/expected-invocation.js'
import { type CallerExecutor, CallerInvocation } from '../../protocol/caller-authorization.js'
import { CapabilityToken } from '../../protocol/capability-token.js'
import { canonicalBytes } from '../../protocol/canonical.js'
import { decode } from '../../protocol/codec.js'
import { BrokerError } from '../../protocol/errors.js'
import { valueHash } from '../../protocol/kernel-receipt.js'
import { ToolCallRequest } from '../../protocol/tool-call.js'
import { syncFolder } from '../../system/retained-file.js'
import type { Act } from './act.js'
import { COORDINATOR } from './host-kernel.js'
import { NoteArguments } from './note.js'
import { type RequestFiles, SERVER_ID, TOOL_NAME } from './place.js'
import { findDocument, readDocument } from './retained.js'

const PRIVATE_FOLDER = 0o700

export interface RetainedRequest {
  readonly expected: CallerInvocation
  readonly request: ToolCallRequest
}

/**
 * Keeps the request before anything is asked under its key; the same text again is the same request.
 * @throws BrokerError `request_binding_mismatch` for another text; nothing is changed.
 */
export async function retainRequest(
  { place, retain }: Act,
  files: RequestFiles,
  { executor, note }: { readonly executor: CallerExecutor; readonly note: string },
): Promise<RetainedRequest> {
  const known = findDocument(files.request, ToolCallRequest)
  if (known !== undefined && noteOf(known) !== note) throw otherText(files)
  const request = known ?? {
    capability_token: readDocument(place.host.grant, CapabilityToken, 'restore it'),
    id: files.key,
    params: { note },
    server_id: SERVER_ID,
    tool: TOOL_NAME,
    type: 'tool_call_request',
  }
  mkdirSync(files.folder, { mode: PRIVATE_FOLDER, recursive: true })
  await syncFolder(place.requests)
  await retain.once(files.request, ToolCallRequest, request)
  const expected = expectedOf(request, executor)
  await retain.once(files.expected, CallerInvocation, expected)
  return { expected, request }
}

/**
 * What the host recorded for the executor.
 * @throws BrokerError `invalid_request` where a file of it is missing, or they disagree.
 */
export function readRequest(files: RequestFiles): RetainedRequest {
  const first = `authorize ${files.key} first`
  const request = readDocument(files.request, ToolCallRequest, first)
  const expected = readDocument(files.expected, CallerInvocation, first)
  if (expected.parameters_digest === valueHash(request.params)) return { expected, request }
  throw new BrokerError(
    'invalid_request',
    `${files.expected} refused: expected the arguments of the retained request, got others; restore both`,
  )
}

export function noteOf({ params }: ToolCallRequest): string {
  return decode(NoteArguments, canonicalBytes(params), 'note arguments').note
}

function expectedOf(request: ToolCallRequest, executor: CallerExecutor): CallerInvocation {
  return expectedInvocation(request, COORDINATOR, {
    effectClass: 'side_effecting',
    executor,
    requiredApprovals: 0,
  })
}

function otherText({ key, request }: RequestFiles): BrokerError {
  return new BrokerError(
    'request_binding_mismatch',
    `authorize ${key} refused: expected the text that is retained in ${request}, got another; give the changed text a key of its own`,
  )
}
