// Owns the reading of provider answers in tests: whole, in halves and byte by byte must give one verdict.
import { expect } from 'vitest'
import { type ReceivedResponse, ResponseReader } from '../../daemon/provider/response-reader.js'
import { type ResponseRefusal, ResponseRefused } from '../../daemon/provider/response-refusal.js'
import type { Method } from '../../protocol/destination.js'

export const LIMIT = 2_097_152
export interface Reading {
  readonly method?: Method
  readonly limit?: number
}
export type Verdict = ReceivedResponse | ResponseRefusal | 'incomplete'

export function readPieces(pieces: readonly Buffer[], { method = 'GET', limit = LIMIT }: Reading): Verdict {
  const reader = new ResponseReader({ method, responseLimitBytes: limit })
  try {
    for (const piece of pieces) reader.push(piece)
  } catch (error) {
    if (error instanceof ResponseRefused) return error.reason
    throw error
  }
  return reader.complete ? reader.result() : 'incomplete'
}

/** Reads whole, in two halves, and byte by byte: the verdict must be one. */
export function read(text: string, reading: Reading = {}): Verdict {
  const bytes = Buffer.from(text, 'latin1')
  const half = bytes.length >> 1
  const whole = readPieces([bytes], reading)
  const halves = readPieces([bytes.subarray(0, half), bytes.subarray(half)], reading)
  expect(halves).toEqual(whole)
  if (bytes.length < 40_000) {
    const single = Array.from(bytes, (_unused, index) => bytes.subarray(index, index + 1))
    expect(readPieces(single, reading)).toEqual(whole)
  }
  return whole
}

export const lines = (...all: string[]): string => all.map(line => `${line}\r\n`).join('')
export const ok = (headers: string[], body = ''): string => lines('HTTP/1.1 200 OK', ...headers, '') + body
export const chunked = (body: string): string => ok(['Transfer-Encoding: chunked'], body)
export const bodyOf = (verdict: Verdict): string =>
  typeof verdict === 'string' ? verdict : Buffer.from(verdict.body).toString('latin1')
