/**
 * A filter that the kernel refuses ends the launch. The program is broken on purpose here: no policy can make one.
 */
import { expect, test, vi } from 'vitest'
import type * as Seccomp from '../../cage/seccomp.js'
import { closeDescriptor, hungUp, socketPair } from '../../native/index.js'
import { openTestCage, requestFrame } from '../support/cage.js'

const broken = vi.hoisted(() => ({ tool: false, warden: false }))

vi.mock('../../cage/seccomp.js', async original => {
  const real = await original<typeof Seccomp>()
  // A program without a return: the kernel's checker answers EINVAL.
  const noReturn = [{ code: 0x20, jumpTrue: 0, jumpFalse: 0, k: 0 }]
  return {
    ...real,
    toolFilter: (...args: Parameters<typeof real.toolFilter>) =>
      broken.tool ? noReturn : real.toolFilter(...args),
    wardenFilter: (...args: Parameters<typeof real.wardenFilter>) =>
      broken.warden ? noReturn : real.wardenFilter(...args),
  }
})

const tool = { path: '/usr/bin/true', argv: ['true'] }

test('refuses with seccomp as the failing call, and closes the stream', async () => {
  broken.tool = true
  const [peer, stream] = socketPair('stream')
  const cage = await openTestCage({ tool })
  const refusal = await cage.handOff(stream, requestFrame).catch((error: unknown) => error)
  broken.tool = false
  closeDescriptor(stream)
  expect(refusal).toMatchObject({ code: 'cage_refused', failingCall: 'seccomp', errnoName: 'EINVAL' })
  expect(hungUp(peer)).toBe(true)
  closeDescriptor(peer)
})

test('refuses before it takes any stream when process 1 cannot be filtered', async () => {
  broken.warden = true
  const refusal = await openTestCage({ tool }).catch((error: unknown) => error)
  broken.warden = false
  expect(refusal).toMatchObject({ code: 'cage_refused', failingCall: 'seccomp', errnoName: 'EINVAL' })
})
