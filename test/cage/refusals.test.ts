/**
 * Every layer that fails refuses the launch with the call or check that failed; nothing runs, nothing stays.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, describe, expect, test } from 'vitest'
import type { WaitingCage } from '../../cage/cage.js'
import { receiveWord } from '../../cage/channel.js'
import { launchCage } from '../../cage/launch.js'
import { cagePolicy, type CagePolicyChoices } from '../../cage/policy.js'
import type { CageRefusal } from '../../cage/refusal.js'
import { systemClock } from '../../native/clock.js'
import {
  closeDescriptor,
  hungUp,
  pipe,
  sealedMemfd,
  sendDescriptors,
  socketPair,
} from '../../native/index.js'
import { openFolder, openTestCage, refusalOf, requestFrame, testIdentity } from '../support/cage.js'

const folder = openFolder()
afterAll(() => folder.remove())

const cages: WaitingCage[] = []
const descriptors: number[] = []
afterEach(async () => {
  await Promise.all(cages.splice(0).map(cage => cage.close()))
  descriptors.splice(0).forEach(closeDescriptor)
})

const nothing = { path: '/usr/bin/true', argv: ['true'] }

function kept<T extends number | readonly number[]>(made: T): T {
  descriptors.push(...[made].flat())
  return made
}

async function waiting(choices: Partial<CagePolicyChoices> = {}): Promise<WaitingCage> {
  const cage = await openTestCage({ tool: nothing, ...choices })
  cages.push(cage)
  return cage
}

describe('a handoff', () => {
  async function handedOver(stream: number, frame: Uint8Array = requestFrame): Promise<CageRefusal> {
    const cage = await waiting()
    return refusalOf(() => cage.handOff(stream, frame))
  }

  test('refuses a descriptor that is no socket', async () => {
    const [read] = kept(pipe())
    expect(await handedOver(read)).toMatchObject({ failingCall: 'getsockopt stream', errnoName: 'ENOTSOCK' })
  })

  test('refuses a socket of another type', async () => {
    const [one] = kept(socketPair('seqpacket'))
    expect(await handedOver(one)).toMatchObject({ failingCall: 'getsockopt stream', errnoName: 'EPROTOTYPE' })
  })

  test('refuses a stream whose peer is gone', async () => {
    const [peer, stream] = socketPair('stream')
    closeDescriptor(peer)
    kept(stream)
    const refusal = await handedOver(stream)
    expect(refusal).toMatchObject({ failingCall: 'poll stream', errnoName: 'ENOTCONN' })
    expect(refusal.message).toBe(
      'cage refused: prepared stream: expected the broker at its other end, got an end that it had closed; nothing was sent: run it again, and look at chio status',
    )
  })

  test('refuses a frame whose prefix is not its length', async () => {
    const [, stream] = kept(socketPair('stream'))
    expect(await handedOver(stream, requestFrame.subarray(0, -1))).toMatchObject({
      failingCall: 'request frame',
    })
  })

  test('refuses a frame over the limit of its policy, and takes one at it', async () => {
    const [, stream] = kept(socketPair('stream'))
    const body = requestFrame.length - 4
    const atLimit = await waiting({ requestBytes: body })
    await (await atLimit.handOff(stream, requestFrame)).close()
    const oneOver = await waiting({ requestBytes: body - 1 })
    const refusal = await refusalOf(() => oneOver.handOff(stream, requestFrame))
    expect(refusal.failingCall).toBe('request frame')
  })

  test('takes the largest frame of the wire', async () => {
    const [, stream] = kept(socketPair('stream'))
    const frame = Buffer.alloc(8 * 1024 * 1024 + 4, 0x20)
    frame.writeUInt32BE(8 * 1024 * 1024)
    const armed = await (await waiting()).handOff(stream, frame)
    await armed.close()
  })

  test('closes the stream when it refuses: the peer sees its end', async () => {
    const [peer, stream] = socketPair('stream')
    kept(peer)
    const cage = await waiting()
    await refusalOf(() => cage.handOff(stream, Buffer.from('no frame')))
    closeDescriptor(stream)
    expect(hungUp(peer)).toBe(true)
  })
})

describe('cage-init', () => {
  /** Speaks with cage-init directly, as a broken launcher would. */
  async function said(
    descriptorCount: number,
    request: 'sealed' | 'pipe',
    word = 'handoff',
  ): Promise<CageRefusal> {
    const { process } = launchCage(cagePolicy({ tool: nothing, identity: testIdentity }), {
      clock: systemClock,
    })
    const deadline = systemClock.bootNs() + 10_000_000_000n
    try {
      expect(await receiveWord(process.control, deadline)).toMatchObject({ text: 'ready' })
      const [, stream] = kept(socketPair('stream'))
      const body = request === 'sealed' ? kept(sealedMemfd('r', requestFrame)) : kept(pipe())[0]
      const surplus = Array.from({ length: Math.max(0, descriptorCount - 2) }, () => stream)
      const sent = [stream, body, ...surplus].slice(0, descriptorCount)
      sendDescriptors(process.control, Buffer.from(word), sent)
      return await refusalOf(() => receiveWord(process.control, deadline))
    } finally {
      await process.end(deadline)
    }
  }

  test.each([
    ['no descriptor', 0, 'ENODATA'],
    ['one descriptor', 1, 'ENODATA'],
    ['three descriptors', 3, 'EMFILE'],
    ['two hundred descriptors', 200, 'EMFILE'],
  ])('ends with its failing call when it gets %s', async (_what, count, errno) => {
    expect(await said(count, 'sealed')).toMatchObject({ failingCall: 'recvmsg handoff', errnoName: errno })
  })

  test('ends when the request is no sealed memory', async () => {
    expect(await said(2, 'pipe')).toMatchObject({ failingCall: 'fcntl request', errnoName: 'EINVAL' })
  })

  test('ends at a word that it does not know', async () => {
    expect(await said(2, 'sealed', 'handof')).toMatchObject({
      failingCall: 'recvmsg handoff',
      errnoName: 'EPROTO',
    })
    expect(await said(2, 'sealed', 'handoffs')).toMatchObject({
      failingCall: 'recvmsg handoff',
      errnoName: 'EPROTO',
    })
  })
})

describe('a tool that cannot run', () => {
  test('is refused when it is not there: in the view, and outside of it', async () => {
    const missing = (path: string) => refusalOf(() => openTestCage({ tool: { path, argv: ['x'] } }))
    expect(await missing('/usr/bin/no-such-tool')).toMatchObject({
      failingCall: 'access target',
      errnoName: 'ENOENT',
    })
    expect(await missing('/nowhere/tool')).toMatchObject({ errnoName: 'ENOENT' })
  })

  test('is refused at its exec when it is no program', async () => {
    const path = join(folder.path, 'text')
    writeFileSync(path, 'neither ELF nor script', { mode: 0o755 })
    const [, stream] = kept(socketPair('stream'))
    const running = (
      await (await waiting({ tool: { path, argv: ['x'] } })).handOff(stream, requestFrame)
    ).go()
    const refusal = await refusalOf(() => running.started)
    expect(refusal).toMatchObject({ failingCall: 'execveat', errnoName: 'ENOEXEC' })
    expect(refusal.message).toContain(`tool ${path}: expected a program of this machine`)
    expect(refusal.message).not.toContain('doctor')
    await refusalOf(() => running.finished)
  })

  test('is refused when its working directory is not there', async () => {
    const refusal = await refusalOf(() => openTestCage({ tool: nothing, directory: '/nowhere' }))
    expect(refusal).toMatchObject({ failingCall: 'chdir', errnoName: 'ENOENT' })
  })
})
