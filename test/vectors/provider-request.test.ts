import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { admitProviderRequest, writeProviderRequest } from '../../daemon/provider/request-writer.js'
import type { BrokerDestination } from '../../protocol/destination.js'
import { SKIP_REASONS, vectorsFolder } from '../support/skips.js'

interface ExecuteRequestVector {
  readonly request: { readonly destination: BrokerDestination; readonly body: number[] }
}

describe('the execute request of the vectors', () => {
  const folder = vectorsFolder()

  it.skipIf(folder === undefined)(`goes on the wire as it was signed (${SKIP_REASONS.vectorsAbsent})`, () => {
    const file = join(folder ?? '', 'broker/positive/broker-execute-request-v1.json')
    const { request } = JSON.parse(readFileSync(file, 'utf8')) as ExecuteRequestVector
    const admitted = admitProviderRequest({
      destination: request.destination,
      headers: [],
      body: Uint8Array.from(request.body),
      placement: { kind: 'bearer_authorization' },
    })
    expect(writeProviderRequest(admitted, Buffer.from('token')).toString('latin1')).toBe(
      'POST /v1 HTTP/1.1\r\nHost: example.com\r\nConnection: close\r\nAccept-Encoding: identity\r\n' +
        'Content-Length: 15\r\nauthorization: Bearer token\r\n\r\nproduction-body',
    )
  })
})
