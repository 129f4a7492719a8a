// Owns one request and its answer on an open connection, and the answer to "did it happen?". Nothing
// written: certain, not sent. Written and then lost, cut or late: unknown. Answered, but not as allowed:
// rejected after acceptance. Must never send again, for no method and no fault.
// Source: broker wire §8.4 (order of failures), §13; RFC 9110 §9.2.2 (why even GET is not repeated here).

import { hasPassed, whenPassed } from '../../system/deadline.js'
import type { Clock } from '../../protocol/clock.js'
import type { HeaderField, Method } from '../../protocol/destination.js'
import { BrokerError } from '../../protocol/errors.js'
import type { ExchangeSink, ProviderConnection } from './connection.js'
import { retainHeaders } from './response-headers.js'
import { type ReceivedResponse, ResponseReader } from './response-reader.js'
import { ResponseRefused, type ResponseRefusal } from './response-refusal.js'
import type { SecretScan } from './secret-scan.js'

export interface ProviderResponse {
  readonly status: number
  /** Sanitized, sorted, unique: what evidence and receipt are about. */
  readonly headers: readonly HeaderField[]
  readonly body: Uint8Array
  /** Exact head bytes, counted against the response limit with the body. */
  readonly headBytes: number
}

export type NotSentReason = 'connection_lost' | 'deadline_passed'
export type UnknownReason = 'connection_reset' | 'deadline_passed' | 'response_truncated'

export type ExchangeResult =
  | { readonly ending: 'response'; readonly response: ProviderResponse }
  | { readonly ending: 'not_sent'; readonly reason: NotSentReason; readonly error: BrokerError }
  | { readonly ending: 'unknown'; readonly reason: UnknownReason; readonly error: BrokerError }
  | { readonly ending: 'rejected'; readonly reason: ResponseRefusal; readonly error: BrokerError }

export interface ExchangeTerms {
  readonly clock: Clock
  /** Absolute: whatever trickles in does not move it. */
  readonly deadlineBootNs: bigint
  readonly method: Method
  readonly responseLimitBytes: number
  /** Wiped when the exchange ends. */
  readonly scan: SecretScan
}

/**
 * Sends a request and reads its answer. The write happens in the caller's own synchronous run.
 * @param connection alive; used up whatever the ending, and destroyed: after a whole answer in the next turn, so that
 * the record of the answer does not wait for it.
 * @param request filled with zeros once it left, and in every ending.
 * @returns an ending; never throws for anything that network or provider did.
 */
export function exchange(
  connection: ProviderConnection,
  request: Uint8Array,
  terms: ExchangeTerms,
): Promise<ExchangeResult> {
  return new Promise((resolve, reject) => {
    // Handed in a second time by mistake, it is another exchange's to end.
    const isOthers = connection.used
    const tidy = (leave: () => void): void => {
      if (!isOthers) leave()
      request.fill(0)
      terms.scan.wipe()
    }
    new RunningExchange(connection, request, terms).start({
      end: result => {
        tidy(() => (result.ending === 'response' ? connection.retire() : connection.drop()))
        resolve(result)
      },
      fail: error => {
        tidy(() => connection.drop())
        reject(error)
      },
    })
  })
}

interface Settlement {
  end(result: ExchangeResult): void
  /** A fault of our own after the write: the caller knows no more than "unknown". */
  fail(error: Error): void
}

class RunningExchange implements ExchangeSink {
  readonly #connection: ProviderConnection
  readonly #request: Uint8Array
  readonly #terms: ExchangeTerms
  readonly #reader: ResponseReader
  #unwatch: () => void = () => undefined
  #settlement: Settlement | undefined

  constructor(connection: ProviderConnection, request: Uint8Array, terms: ExchangeTerms) {
    this.#connection = connection
    this.#request = request
    this.#terms = terms
    this.#reader = new ResponseReader(terms)
  }

  start(settlement: Settlement): void {
    this.#settlement = settlement
    const { clock, deadlineBootNs } = this.#terms
    if (hasPassed(clock, deadlineBootNs)) return this.#end(notSent('deadline_passed'))
    if (!this.#connection.isAlive()) return this.#end(notSent('connection_lost'))
    this.#connection.send(this.#request, this)
    this.#unwatch = whenPassed(clock, deadlineBootNs, () => this.#end(unknown('deadline_passed')))
  }

  written(): void {
    this.#request.fill(0)
  }

  received(chunk: Uint8Array): void {
    if (this.#settlement === undefined) return
    const { clock, deadlineBootNs } = this.#terms
    if (hasPassed(clock, deadlineBootNs)) return this.#end(unknown('deadline_passed'))
    try {
      this.#reader.push(chunk)
      if (this.#reader.complete) this.#end(this.#judge(this.#reader.result()))
    } catch (error) {
      this.#fault(error)
    }
  }

  ended(): void {
    this.#end(unknown('response_truncated'))
  }

  closed(errorCode: string | null): void {
    this.#end(errorCode === null ? unknown('response_truncated') : unknown('connection_reset', errorCode))
  }

  #judge({ status, fields, body, headBytes }: ReceivedResponse): ExchangeResult {
    const headers = retainHeaders(fields)
    const form = this.#terms.scan.findInHeaders(headers) ?? this.#terms.scan.find(body)
    if (form === null) return { ending: 'response', response: { status, headers, body, headBytes } }
    // What reflects the credential is a copy of it.
    body.fill(0)
    for (const { value } of headers) value.fill(0)
    throw new ResponseRefused('credential_reflected', `its ${form} form`)
  }

  #fault(error: unknown): void {
    if (error instanceof ResponseRefused) {
      return this.#end({ ending: 'rejected', reason: error.reason, error })
    }
    const cause = error instanceof Error ? error : new Error('reading the answer failed')
    this.#close()?.fail(
      new BrokerError('invariant', 'reading the answer failed', { outcome: 'unknown', cause }),
    )
  }

  #end(result: ExchangeResult): void {
    this.#close()?.end(result)
  }

  /** Hands out the settlement to the first ending only; late events find none. */
  #close(): Settlement | undefined {
    const settlement = this.#settlement
    this.#settlement = undefined
    this.#unwatch()
    return settlement
  }
}

const UNKNOWN_SENTENCES: Record<UnknownReason, string> = {
  connection_reset: 'the connection failed after the request was written',
  deadline_passed: 'the deadline passed after the request was written',
  response_truncated: 'the provider closed before its answer was complete',
}

function unknown(reason: UnknownReason, errorCode?: string): ExchangeResult {
  const detail = errorCode === undefined ? '' : ` (${errorCode})`
  const sentence = `${UNKNOWN_SENTENCES[reason]}${detail}: it may have been acted on; it is not sent again`
  return { ending: 'unknown', reason, error: new BrokerError('upstream', sentence, { outcome: 'unknown' }) }
}

function notSent(reason: NotSentReason): ExchangeResult {
  const what = reason === 'deadline_passed' ? 'the deadline passed' : 'the provider connection was lost'
  const error = new BrokerError('upstream', `${what} before the request was written: nothing was sent`)
  return { ending: 'not_sent', reason, error }
}
