// The retained request: readable under its own key and operation alone, and never twice the same bytes.
import { beforeAll, expect, test } from 'vitest'
import { openRequest, sealRequest } from '../../kernel/sealed-request.js'
import { encode } from '../../protocol/codec.js'
import { BrokerExecuteRequest } from '../../protocol/execute-request.js'
import { issueGrant, makeTestKernel, seed } from '../support/kernel.js'
import { reserved } from '../support/brokered-operation.js'

const key = seed()
const operationId = 'a'.repeat(64)
let execute: BrokerExecuteRequest
let canonical: Uint8Array
beforeAll(async () => {
  const kernel = await makeTestKernel()
  execute = (await reserved(kernel, await issueGrant(kernel))).execute
  canonical = encode(BrokerExecuteRequest, execute)
  await kernel.remove()
})

test('opens to the request that was sealed', () => {
  const sealed = sealRequest(key, operationId, canonical)
  expect(encode(BrokerExecuteRequest, openRequest(key, operationId, sealed))).toEqual(canonical)
  expect(Buffer.from(sealed.ciphertext).includes(Buffer.from(canonical.subarray(0, 32)))).toBe(false)
  expect(sealRequest(key, operationId, canonical).ciphertext).not.toEqual(sealed.ciphertext)
})

test('does not open under another key, another operation, or with a byte changed or missing', () => {
  const sealed = sealRequest(key, operationId, canonical)
  const changed = { ...sealed, ciphertext: Buffer.from(sealed.ciphertext) }
  changed.ciphertext[7] = (changed.ciphertext[7] ?? 0) ^ 1
  const refused = expect.objectContaining({ code: 'storage' }) as Error
  expect(() => openRequest(seed(), operationId, sealed)).toThrow(refused)
  expect(() => openRequest(key, 'b'.repeat(64), sealed)).toThrow(refused)
  expect(() => openRequest(key, operationId, changed)).toThrow(refused)
  for (const length of [0, 15, 16, sealed.ciphertext.length - 1]) {
    const cut = { ...sealed, ciphertext: sealed.ciphertext.subarray(0, length) }
    expect(() => openRequest(key, operationId, cut)).toThrow(refused)
  }
})
