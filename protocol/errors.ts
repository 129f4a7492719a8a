// Owns the one error class of this project. A sentence says what was refused, what was expected, what
// came and what to do next; it never holds content, tokens, peer bytes or a secret.
// The first question of whoever catches one is "did it happen?": `outcome` answers it, always.

import { ERROR_CODES, type ErrorCode } from './error-codes.js'

export type { ErrorCode } from './error-codes.js'

export type Outcome = 'not_started' | 'unknown' | 'completed'

export interface BrokerErrorOptions {
  /** Left out: `unknown` for the codes that exit 75, `not_started` for all others. */
  readonly outcome?: Outcome
  readonly operationId?: string | undefined
  /** The kernel's signed receipt of the refusal, where there is one. */
  readonly receiptId?: string | undefined
  readonly cause?: unknown
}

export class BrokerError extends Error {
  override readonly name = 'BrokerError'
  readonly code: ErrorCode
  readonly outcome: Outcome
  /** Declared, not defined: absent when nothing is known. */
  declare readonly operationId?: string
  /** Declared likewise. */
  declare readonly receiptId?: string

  constructor(code: ErrorCode, sentence: string, options: BrokerErrorOptions = {}) {
    super(sentence, options.cause === undefined ? undefined : { cause: options.cause })
    this.code = code
    this.outcome = options.outcome ?? (ERROR_CODES[code].exitCode === 75 ? 'unknown' : 'not_started')
    if (options.operationId !== undefined) this.operationId = options.operationId
    if (options.receiptId !== undefined) this.receiptId = options.receiptId
  }
}

/** An error as every command prints it with --json, and as a daemon that ends says it. */
export function errorDocument({
  code,
  message,
  outcome,
  operationId = null,
  receiptId = null,
}: {
  readonly code: ErrorCode
  readonly message: string
  readonly outcome: Outcome
  readonly operationId?: string | null
  readonly receiptId?: string | null
}) {
  const { next } = ERROR_CODES[code]
  return { schema: 'chio.error.v1', code, sentence: message, outcome, operationId, receiptId, next } as const
}

export function isBrokerError(error: unknown): error is BrokerError {
  return error instanceof BrokerError
}
