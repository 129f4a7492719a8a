import { randomBytes } from 'node:crypto'
import { rmSync } from 'node:fs'
import { afterAll, describe, expect, test } from 'vitest'
import { digestsOf, executePart } from '../../daemon/canonical-parts.js'
import { AuthenticatedAttemptRequest } from '../../protocol/attempt-request.js'
import { encode } from '../../protocol/codec.js'
import {
  BrokerExecuteRequest,
  requestCanonicalDigest,
  requestDigest,
} from '../../protocol/execute-request.js'
import { BrokerWorld } from '../support/broker-world.js'

const world = new BrokerWorld({ provider: false })
afterAll(() => rmSync(world.folder, { recursive: true, force: true }))

describe('a part of canonical bytes', () => {
  test.each([0, 1, 300, 50_000])('is exactly the document at its place, with a body of %i bytes', bytes => {
    const { registration, request } = world.attempt({ body: randomBytes(bytes) })
    const payload = encode(AuthenticatedAttemptRequest, { registration, request })
    const part = executePart(payload, registration)
    expect(Buffer.compare(Buffer.from(part), encode(BrokerExecuteRequest, request))).toBe(0)
    expect(digestsOf(request, part)).toEqual({
      requestCanonicalDigest: requestCanonicalDigest(request),
      requestDigest: requestDigest(request.request),
    })
  })

  test('is found behind an invocation id of any script, with escapes', () => {
    for (const invocationId of ['übung "zitat" \\', '\u{1f600}', 'a/b', 'x\u2028y']) {
      const request = { ...world.attempt().request, invocationId }
      const part = encode(BrokerExecuteRequest, request)
      expect(digestsOf(request, part).requestDigest).toBe(requestDigest(request.request))
    }
  })
})
