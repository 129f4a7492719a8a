// The end of a kernel that is being asked at that moment.
import { afterEach, beforeEach, expect, test } from 'vitest'
import { clientOf, makeTestKernel, type TestKernel, UNREACHABLE } from '../../support/kernel.js'

let kernel: TestKernel
let answerBroker: () => void
let asked: Promise<void>
beforeEach(async () => {
  let tellAsked: () => void
  asked = new Promise(resolve => (tellAsked = resolve))
  const waiting = new Promise<void>(resolve => (answerBroker = resolve))
  const hold = async (): Promise<boolean> => {
    tellAsked()
    await waiting
    return false
  }
  const attemptStatus = async (): Promise<'unreachable'> => {
    await hold()
    return 'unreachable'
  }
  kernel = await makeTestKernel({ records: { ...UNREACHABLE, attemptStatus, isReachable: hold } })
})
afterEach(async () => {
  answerBroker()
  await kernel.remove()
})

test('answers what is asked, refuses what comes then, and lets go of its sockets last', async () => {
  const other = clientOf(kernel.config)
  await other.call('list', { limit: 1 })
  const answer = kernel.client.call('status', {})
  await asked
  const closing = kernel.running.close()
  await expect(other.call('list', { limit: 1 })).rejects.toMatchObject({
    code: 'kernel_stopping',
    outcome: 'not_started',
  })
  answerBroker()
  expect(await answer).toMatchObject({ brokerReachable: false })
  await closing
  await expect(other.call('list', { limit: 1 })).rejects.toMatchObject({ code: 'kernel_unavailable' })
  other.close()
})

test('waits for nobody when it is hurried', async () => {
  const answer = kernel.client.call('status', {}).catch((error: unknown) => error)
  await asked
  const closing = kernel.running.close()
  kernel.running.hurry()
  await closing
  expect(await answer).toMatchObject({ code: 'kernel_unavailable' })
})
