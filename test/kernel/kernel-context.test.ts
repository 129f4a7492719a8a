// A kernel is whole or not at all.
import { describe, expect, test } from 'vitest'
import { assertComplete } from '../../kernel/kernel-context.js'
import { systemClock } from '../../native/clock.js'
import { signingKey } from '../../protocol/keys.js'
import { kernelConfig, makeKernelKeys, seed, UNREACHABLE } from '../support/kernel.js'

const people = { administrator: signingKey(seed()), broker: signingKey(seed()), caller: signingKey(seed()) }
const whole = {
  clock: systemClock,
  config: kernelConfig('/state', people),
  keys: makeKernelKeys(),
  records: UNREACHABLE,
}

describe('a kernel', () => {
  test('is accepted whole', () => {
    expect(() => assertComplete(whole)).not.toThrow()
  })

  test('lists everything that is missing in one refusal', () => {
    expect(() => assertComplete({})).toThrow(
      /expected configuration, clock, broker records, kernel key, authority key, issuer key, storage key, got none/,
    )
    expect(() => assertComplete({ ...whole, keys: { ...whole.keys, storage: new Uint8Array(31) } })).toThrow(
      /expected storage key, got none/,
    )
  })
})
