// Owns where the example keeps what: the host's part, the executor's part, the journal, and a folder for each request.
// Must never: be the state of an installation: a kernel that is embedded serves a store of its own.
// Source: the review-note example of caller delivery.
import { join } from 'node:path'
import { BrokerError } from '../../protocol/errors.js'

export const DEFAULT_STATE = '.caller'
export const SERVER_ID = 'review-notes'
export const TOOL_NAME = 'append'

/** Whoever reads a folder name has to be able to type it, and no name leads out of its folder. */
const REQUEST_KEY = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/

export interface Place {
  readonly state: string
  readonly host: {
    readonly directory: string
    readonly keyFiles: Readonly<Record<'authority' | 'issuer' | 'kernel' | 'storage', string>>
    /** Of the agent in whose name the host asks: the subject of its grant. */
    readonly callerKey: string
    /** As auditors pin it: 64 hex digits and a newline. */
    readonly kernelPublicKey: string
    /** The root grant. It is written last: a state without it was never finished. */
    readonly grant: string
  }
  readonly executorPin: string
  readonly executorKey: string
  readonly ledger: string
  readonly journal: string
  readonly requests: string
}

export function placeOf(state: string): Place {
  const host = join(state, 'host')
  const key = (name: string): string => join(host, 'keys', `${name}.key`)
  return {
    executorKey: join(state, 'executor', 'executor.key'),
    executorPin: join(state, 'executor.json'),
    host: {
      callerKey: key('caller'),
      directory: host,
      grant: join(host, 'grant.json'),
      kernelPublicKey: join(host, 'kernel.pub'),
      keyFiles: {
        authority: key('authority'),
        issuer: key('issuer'),
        kernel: key('kernel'),
        storage: key('storage'),
      },
    },
    journal: join(state, 'resource', 'review-notes.jsonl'),
    ledger: join(state, 'ledger.db'),
    requests: join(state, 'requests'),
    state,
  }
}

/** What stays of one request. */
export interface RequestFiles {
  readonly key: string
  readonly folder: string
  readonly request: string
  /** What the host expects to be executed, from its own request and from nothing that is signed later. */
  readonly expected: string
  readonly reservationReceipt: string
  readonly nonce: string
  readonly authorization: string
  readonly startRefusal: string
  readonly report: string
  readonly completedReceipt: string
  readonly result: string
}

/** @throws BrokerError `usage` for a key that is no plain name. */
export function requestFiles({ requests }: Place, key: string): RequestFiles {
  if (!REQUEST_KEY.test(key)) {
    throw new BrokerError(
      'usage',
      'operation key refused: expected 1 to 64 letters, digits and . _ -, beginning with a letter or a digit, got another',
    )
  }
  const file = (name: string): string => join(requests, key, name)
  return {
    authorization: file('authorization.json'),
    completedReceipt: file('completed.receipt.json'),
    expected: file('expected.json'),
    folder: join(requests, key),
    key,
    nonce: file('nonce.json'),
    report: file('report.json'),
    request: file('request.json'),
    reservationReceipt: file('reservation.receipt.json'),
    result: file('result.json'),
    startRefusal: file('start-refusal.receipt.json'),
  }
}
