// What a grant may say: a destination that no run could reach is refused when it is issued.
import { describe, expect, test } from 'vitest'
import { checkGrant, type Grant } from '../../protocol/grant.js'
import { signingKey } from '../../protocol/keys.js'
import { grantFor, seed } from '../support/kernel.js'

const people = { caller: signingKey(seed()) }

function grantTo(normalizedHost: string): Grant {
  const grant = grantFor(people)
  return { ...grant, destination: { ...grant.destination, normalizedHost } }
}

describe('a grant', () => {
  test('may name a host', () => {
    expect(() => checkGrant(grantTo('provider.test'))).not.toThrow()
  })

  test.each(['203.0.113.7', '127.0.0.1', '127.1', '2130706433', '0x7f000001', '::1', '2001:db8::1'])(
    'to the address %s is refused, as every run under it would be',
    host => {
      expect(() => checkGrant(grantTo(host))).toThrow(
        expect.objectContaining({
          code: 'invalid_request',
          message:
            'grant destination.normalizedHost refused: expected a DNS name, got an address; give the name in its certificate',
        }),
      )
    },
  )
})
