// Owns the operations of the broker as data: what each one is, when it is permitted, who serves it. An operation
// without a row closes the connection.
// Must never: serve what a row does not permit.
// Source: the broker protocol, section 2.2.
import type { BrokerOperation } from '../protocol/envelope.js'
import { administer } from './admin.js'
import type { BrokerExchange, BrokerParts } from './parts.js'
import { prepareConnection } from './prepare.js'
import { Refused } from './refused.js'
import { registerAttempt } from './register.js'
import { releaseAttempt } from './release.js'
import { replayExecute } from './replay.js'
import { attemptStatus, slotStatus } from './status.js'

type Handler<T> = (parts: BrokerParts, exchange: BrokerExchange) => T | Promise<T>

/** `document` is wrapped as the answer, `frame` is the whole answer, `stream` answers by itself. */
export type OperationRow = {
  /** `serving`: not any more once the broker stops. */
  readonly permitted: 'always' | 'serving'
  /** The wire demands authorization bytes of everything that changes something. */
  readonly authorization: 'required' | 'none'
  /** `always`: what administers or only looks. The others are heard up to a number at once. */
  readonly heard: 'always' | 'in_turn'
} & (
  | { readonly answers: 'document'; readonly handle: Handler<Uint8Array> }
  | { readonly answers: 'frame'; readonly handle: Handler<Uint8Array> }
  | { readonly answers: 'stream'; readonly handle: Handler<void> }
)

const unserved: OperationRow = {
  permitted: 'always',
  authorization: 'required',
  heard: 'always',
  answers: 'document',
  handle: () => {
    throw new Refused('operation_unserved', 'one that it does not serve')
  },
}
const administrative: OperationRow = {
  permitted: 'serving',
  authorization: 'required',
  heard: 'always',
  answers: 'document',
  handle: administer,
}

export const OPERATIONS: Readonly<Record<BrokerOperation, OperationRow>> = {
  attempt_status: {
    permitted: 'always',
    authorization: 'none',
    heard: 'always',
    answers: 'document',
    handle: attemptStatus,
  },
  credential_list: administrative,
  delete: unserved,
  disable: administrative,
  execute: {
    permitted: 'always',
    authorization: 'required',
    heard: 'in_turn',
    answers: 'frame',
    handle: replayExecute,
  },
  issue: unserved,
  prepare_connection: {
    permitted: 'serving',
    authorization: 'required',
    heard: 'in_turn',
    answers: 'stream',
    handle: prepareConnection,
  },
  prepare_dispatch: unserved,
  provision: administrative,
  register_attempt: {
    permitted: 'serving',
    authorization: 'required',
    heard: 'in_turn',
    answers: 'document',
    handle: registerAttempt,
  },
  release_attempt: {
    permitted: 'always',
    authorization: 'required',
    heard: 'in_turn',
    answers: 'document',
    handle: releaseAttempt,
  },
  revoke: administrative,
  rotate: unserved,
  slot_status: {
    permitted: 'always',
    authorization: 'none',
    heard: 'always',
    answers: 'document',
    handle: slotStatus,
  },
  status: unserved,
}

export function operationRow(operation: string): OperationRow | undefined {
  return Object.hasOwn(OPERATIONS, operation) ? OPERATIONS[operation as BrokerOperation] : undefined
}
