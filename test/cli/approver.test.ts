// How commands read who approves and by which key.
import { describe, expect, test } from 'vitest'
import { parseApprover, withApproverKey } from '../../cli/approver.js'
import { signingKey } from '../../protocol/keys.js'

const { publicKey } = signingKey(new Uint8Array(32).fill(84))

describe('an approver on the command line', () => {
  test('is an id and a public key, of which the id may hold an equals sign', () => {
    expect(parseApprover(`lead=${publicKey}`)).toEqual({ approverId: 'lead', publicKey })
    expect(parseApprover(`team=lead=${publicKey}`)).toEqual({ approverId: 'team=lead', publicKey })
  })

  test.each([
    'lead',
    `=${publicKey}`,
    `lead=${'0'.repeat(64)}`,
    `lead=${publicKey.slice(1)}`,
    `lead=p256:${publicKey}`,
  ])('is never %s', text => {
    expect(() => parseApprover(text)).toThrow(/refused/)
  })
})

test.each([
  [{ keyFd: '3', keyFile: '/key' }, /got both/],
  [{ keyFd: '0' }, /a descriptor from 3/],
  [{ keyFd: '03' }, /a descriptor from 3/],
  [{ keyFile: '/nowhere/key' }, /refused/],
])('a key of %j is refused before anything is signed', async (options, sentence) => {
  let signed = false
  const sign = () => Promise.resolve((signed = true))
  await expect(withApproverKey(options, sign)).rejects.toThrow(sentence)
  expect(signed).toBe(false)
})
