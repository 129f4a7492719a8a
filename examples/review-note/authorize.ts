// review-note authorize: the request is kept, then reserved, then started; only a committed start lets the executor run.
// Must never: take a reservation for a permission, or forget what the kernel refused.
// Source: `review-note authorize`: reservation, its nonce, the committed start or the receipt of its refusal.
import { existsSync } from 'node:fs'
import { CallerAuthorization, verifyHistorical } from '../../protocol/caller-authorization.js'
import { ERROR_CODES, type ErrorCode } from '../../protocol/error-codes.js'
import { BrokerError } from '../../protocol/errors.js'
import { SignedExecutionNonce } from '../../protocol/execution-nonce.js'
import { KernelReceipt } from '../../protocol/kernel-receipt.js'
import type { CallAnswer, StartAnswer } from '../../protocol/tool-call-rpc.js'
import type { Act } from './act.js'
import { type HostKernel, withHostKernel } from './host-kernel.js'
import { readNote } from './note.js'
import { type RequestFiles, requestFiles } from './place.js'
import { retainRequest, type RetainedRequest } from './request.js'
import { findDocument } from './retained.js'

export interface Authorized {
  readonly authorization: CallerAuthorization
  readonly operationId: string
}

/** The same text under the same key is answered with the same authorization. @throws BrokerError for every refusal. */
export async function authorize(act: Act, file: string, key: string): Promise<Authorized> {
  const files = requestFiles(act.place, key)
  const note = readNote(file)
  return withHostKernel(act, async host => {
    // Under the kernel's lease: of two texts that are given under one key at once, the second finds the first.
    const retained = await retainRequest(act, files, { executor: host.executor, note })
    const nonce =
      findDocument(files.nonce, SignedExecutionNonce) ?? (await reserved(act, files, { host, retained }))
    return started(act, files, { host, nonce, retained })
  })
}

interface Asked {
  readonly host: HostKernel
  readonly retained: RetainedRequest
}

/** The nonce of the reservation, after the receipt of it. A refusal is kept as well, the first one. */
async function reserved(
  { retain }: Act,
  files: RequestFiles,
  { host, retained: { expected, request } }: Asked,
): Promise<SignedExecutionNonce> {
  const answer = await host.kernel.calls.reserveCall(host.caller, request)
  const { executionNonce, operationId, receipt, verdict } = answer
  const isAllowed = verdict === 'allow'
  if (receipt !== null && (isAllowed || !existsSync(files.reservationReceipt))) {
    await retain.newest(files.reservationReceipt, KernelReceipt, receipt)
  }
  if (!isAllowed) throw refused('reservation', answer)
  if (operationId !== expected.operation_id) throw foreign(operationId, expected.operation_id)
  if (executionNonce === null) throw withoutNonce(files, answer)
  await retain.once(files.nonce, SignedExecutionNonce, executionNonce)
  return executionNonce
}

async function started(
  { retain }: Act,
  files: RequestFiles,
  { host, nonce, retained: { expected, request } }: Asked & { readonly nonce: SignedExecutionNonce },
): Promise<Authorized> {
  const answer = await host.kernel.calls.start(host.caller, {
    arguments: request.params,
    context: null,
    credentials: {},
    executionNonce: nonce,
  })
  const { authorization, receipt } = answer
  if (authorization === null) {
    if (receipt !== null && !existsSync(files.startRefusal)) {
      await retain.once(files.startRefusal, KernelReceipt, receipt)
    }
    throw refused('start', answer)
  }
  verifyHistorical(authorization, {
    executor: host.executor,
    invocation: expected,
    kernelKey: host.kernelKey,
  })
  await retain.once(files.authorization, CallerAuthorization, authorization)
  return { authorization, operationId: expected.operation_id }
}

/** A refusal of the kernel as an error, with the receipt that proves it. */
export function refused(what: string, { code, operationId, reason, receipt }: CallAnswer): BrokerError {
  return new BrokerError(
    isErrorCode(code) ? code : 'authorization_denied',
    `${what} refused: ${reason ?? 'the kernel gave no reason'}`,
    {
      operationId: operationId ?? undefined,
      receiptId: receipt?.id,
    },
  )
}

function isErrorCode(code: StartAnswer['code']): code is ErrorCode {
  return code !== null && Object.hasOwn(ERROR_CODES, code)
}

function foreign(operationId: string | null, expected: string): BrokerError {
  return new BrokerError(
    'invariant',
    `reservation refused: expected operation ${expected}, got ${operationId ?? 'none'}`,
  )
}

function withoutNonce({ nonce }: RequestFiles, { operationId, state }: CallAnswer): BrokerError {
  return new BrokerError(
    'invalid_request',
    `${nonce} refused: expected the nonce of operation ${operationId}, which is ${state}, got none; restore it`,
    { operationId: operationId ?? undefined },
  )
}
