// Which executor a kernel pins: that of its embedding or of its configuration.
import { describe, expect, test } from 'vitest'
import { pinnedExecutor } from '../../../kernel/delivery/caller-pin.js'
import { TestExecutor } from '../../support/caller-executor.js'

const [one, other] = [new TestExecutor('one', 1), new TestExecutor('other', 2)]

describe('the pin', () => {
  const configured = {
    executor: {
      executorId: one.pin.executor_id,
      keyEpoch: one.pin.key_epoch,
      publicKey: one.key.publicKey,
    },
  }

  test('is that of the embedding or of the configuration, and both agree', () => {
    expect(pinnedExecutor({ callerDelivery: null })).toBeNull()
    expect(pinnedExecutor({ callerDelivery: configured })).toEqual(one.pin)
    expect(pinnedExecutor({ callerDelivery: configured }, one.pin)).toEqual(one.pin)
    expect(pinnedExecutor({ callerDelivery: null }, other.pin)).toEqual(other.pin)
    expect(() => pinnedExecutor({ callerDelivery: configured }, other.pin)).toThrow(
      /expected the executor one of epoch 1, key .* of the configuration, got executor other of epoch 2/,
    )
  })

  test.each([
    ['a weak key', { public_key: '00'.repeat(32) }],
    ['an epoch of nothing', { key_epoch: 0 }],
    ['an empty id', { executor_id: '' }],
  ])('with %s starts no kernel', (_what, changes) => {
    expect(() => pinnedExecutor({ callerDelivery: null }, { ...one.pin, ...changes })).toThrow(
      expect.objectContaining({ code: 'invalid_configuration' }),
    )
  })
})
