import { spawn } from 'node:child_process'
import { describe, expect, test } from 'vitest'
import * as native from '../../native/index.js'
import { codeOf, deadlineIn, runPython } from '../support/descriptors.js'

const text = (value: string): Uint8Array => new TextEncoder().encode(value)

describe('messages', () => {
  test('arrive one at a time, with their sender, and end with null', async () => {
    const [near, far] = native.socketPair('seqpacket')
    native.setPassCredentials(near, true)
    const reading = native.receiveMessage(near, deadlineIn(5000), 64)
    const run = runPython('s.send(b"armed"); s.send(b""); s.send(b"done"); print(os.getpid())', [far])
    native.closeDescriptor(far)
    const pid = Number(run.stdout)
    expect(await reading).toMatchObject({ payload: text('armed'), credentials: { pid } })
    expect(await native.receiveMessage(near, deadlineIn(1000), 64)).toMatchObject({
      payload: new Uint8Array(0),
    })
    expect(await native.receiveMessage(near, deadlineIn(1000), 64)).toMatchObject({ payload: text('done') })
    expect(await native.receiveMessage(near, deadlineIn(1000), 64)).toBeNull()
    native.closeDescriptor(near)
  })

  test('are waited for until the deadline', async () => {
    const [near, far] = native.socketPair('seqpacket')
    expect(await codeOf(() => native.receiveMessage(near, deadlineIn(60), 64))).toBe('ETIMEDOUT')
    native.closeDescriptor(near)
    native.closeDescriptor(far)
  })
})

test('the end of a process is waited for through its pidfd', async () => {
  const child = spawn('/bin/sleep', ['60'], { stdio: 'ignore' })
  const pidfd = native.pidfdOpen(child.pid!)
  const ended = native.awaitReadable(pidfd, deadlineIn(5000))
  child.kill('SIGKILL')
  await ended
  expect(native.pidfdAlive(pidfd)).toBe(false)
  native.closeDescriptor(pidfd)
})
