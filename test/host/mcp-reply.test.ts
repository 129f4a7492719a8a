// What a server answers, after any small change: it is refused with a sentence of ours, or it is the broker's own
// answer still. Nothing of it is quoted.
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { JsonMembers } from '../../client/mcp-message.js'
import { checkAnswer, listedTool, openedSession, readReply } from '../../host/mcp-reply.js'
import { encode } from '../../protocol/codec.js'
import { isBrokerError } from '../../protocol/errors.js'
import { BrokerExecuteResponse } from '../../protocol/execute-response.js'
import { HeldClock } from '../support/clock.js'
import { FULL_RUN_TIMEOUT_MS, fullCount } from '../support/counts.js'
import { response } from '../support/own-outcome.js'
import { execute, OWN_KEYS, registration } from '../support/own-request.js'

const own = response()
const context = { request: execute, registration, receiptSigner: OWN_KEYS.receipt.publicKey }
const asked = { context, clock: new HeldClock(own.receipt.body.issuedAtUnixSeconds * 1_000) }
const document = Buffer.from(encode(BrokerExecuteResponse, own)).toString()
const answer = `{"id":3,"jsonrpc":"2.0","result":{"content":[],"isError":false,"structuredContent":${document}}}`

function resultOf(line: string): JsonMembers {
  const reply = readReply(Buffer.from(line))
  if (reply.kind !== 'result') throw new Error('expected a result')
  return reply.result
}

const NEEDLE = 'zq7-of-the-server'

describe('an answer', () => {
  test('of the broker stands', () => {
    expect(() => checkAnswer(resultOf(answer), asked)).not.toThrow()
  })

  test(
    'that was changed anywhere is refused, or says the same, and is never quoted',
    () => {
      const change = fc.tuple(
        fc.nat(answer.length - 1),
        fc.nat(3),
        fc.constantFrom('', '0', '"', ',', '}', NEEDLE),
      )
      fc.assert(
        fc.property(change, ([at, drop, put]) => {
          const changed = answer.slice(0, at) + put + answer.slice(at + drop)
          const sentence = refusalOf(changed)
          if (sentence === undefined) expect(documentOf(changed)).toEqual(documentOf(answer))
          else expect(sentence).not.toContain(NEEDLE)
        }),
        { numRuns: fullCount(300, 20_000) },
      )
    },
    FULL_RUN_TIMEOUT_MS,
  )
})

/** A notification has no result to stand for: as a refusal it is the empty sentence. */
function refusalOf(line: string): string | undefined {
  try {
    const reply = readReply(Buffer.from(line))
    if (reply.kind === 'notification') return ''
    checkAnswer(reply.result, asked)
    return undefined
  } catch (error) {
    if (!isBrokerError(error)) throw error
    return error.message
  }
}

const documentOf = (line: string): unknown => resultOf(line)['structuredContent']

test.each<[string, (result: JsonMembers) => unknown]>([
  ['initialize', openedSession],
  ['tools/list', listedTool],
])('whatever JSON answers %s is taken or refused with a sentence of ours', (_method, read) => {
  fc.assert(
    fc.property(
      fc.dictionary(fc.constantFrom('capabilities', 'tools', 'protocolVersion'), fc.jsonValue()),
      result => {
        try {
          read(result as JsonMembers)
        } catch (error) {
          expect(isBrokerError(error)).toBe(true)
        }
      },
    ),
    { numRuns: fullCount(200, 5_000) },
  )
})
