/**
 * Every layer that fails refuses the launch with the call or check that failed; nothing runs, nothing stays.
 */
import { chmodSync, chownSync, copyFileSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { afterAll, afterEach, describe, expect, test } from 'vitest'
import { findBubblewrap } from '../../cage/bubblewrap.js'
import type { WaitingCage } from '../../cage/cage.js'
import { receiveWord } from '../../cage/channel.js'
import { cageIdentity } from '../../cage/identity.js'
import { launchCage } from '../../cage/launch.js'
import { cagePolicy, type CagePolicyChoices } from '../../cage/policy.js'
import { CageRefusal } from '../../cage/refusal.js'
import { systemClock } from '../../native/clock.js'
import {
  closeDescriptor,
  hungUp,
  pipe,
  sealedMemfd,
  sendDescriptors,
  socketPair,
} from '../../native/index.js'
import { runWith } from '../support/descriptors.js'
import { isRoot, openFolder, openTestCage, requestFrame, testIdentity } from '../support/cage.js'
import { SKIP_REASONS } from '../support/skips.js'
import { describeWhen } from '../support/when.js'

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

async function refusalOf(action: () => unknown): Promise<CageRefusal> {
  const error: unknown = await Promise.resolve()
    .then(action)
    .then(
      () => undefined,
      (thrown: unknown) => thrown,
    )
  expect(error).toBeInstanceOf(CageRefusal)
  expect(error).toMatchObject({ code: 'cage_refused', outcome: 'not_started' })
  return error as CageRefusal
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
    expect(await handedOver(stream)).toMatchObject({ failingCall: 'poll stream', errnoName: 'ENOTCONN' })
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
      failingCall: 'open target',
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
    await refusalOf(() => running.finished)
  })

  test('is refused when its working directory is not there', async () => {
    const refusal = await refusalOf(() => openTestCage({ tool: nothing, directory: '/nowhere' }))
    expect(refusal).toMatchObject({ failingCall: 'chdir', errnoName: 'ENOENT' })
  })
})

describe('the launcher', () => {
  test('refuses on a worker thread, whose end would kill the cage', async () => {
    const url = new URL('../../dist/cage/index.js', import.meta.url).href
    const script = `
      const { parentPort } = require('node:worker_threads')
      import(${JSON.stringify(url)})
        .then(c => c.openCage(c.cagePolicy({ tool: { path: '/usr/bin/true', argv: ['true'] } })))
        .then(() => parentPort.postMessage('opened'), e => parentPort.postMessage(e.failingCall))`
    const worker = new Worker(script, { eval: true })
    const message = await new Promise(resolve => worker.once('message', resolve))
    await worker.terminate()
    expect(message).toBe('thread')
  })

  test('refuses a bwrap that is missing or named without its whole path', async () => {
    expect(await refusalOf(() => findBubblewrap('/usr/bin/no-bwrap'))).toMatchObject({ errnoName: 'ENOENT' })
    expect(await refusalOf(() => findBubblewrap('bwrap'))).toMatchObject({ failingCall: 'bwrap path' })
  })

  test('knows the bwrap that it used by its digest', () => {
    const expected = runWith('/usr/bin/sha256sum', ['/usr/bin/bwrap']).stdout.split(' ')[0]
    expect(findBubblewrap()).toEqual({ path: '/usr/bin/bwrap', sha256: expected })
  })

  test('refuses an identity that stands for someone else', async () => {
    for (const id of [0, 65_534, 0xffff_ffff, -1]) {
      expect(await refusalOf(() => cageIdentity({ uid: id, gid: 61_184 }))).toMatchObject({
        failingCall: 'cage uid',
      })
    }
  })
})

describeWhen(isRoot, SKIP_REASONS.needsRoot, 'a launcher that is root', () => {
  // Below /: the temporary folder is writable by all, and a sticky folder is accepted.
  const place = (name: string, content: string | null, mode: number): string => {
    const path = join(folder.path, name)
    if (content === null) copyFileSync('/usr/bin/bwrap', path)
    else writeFileSync(path, content)
    chmodSync(path, mode)
    return path
  }

  test('refuses without an identity for the cage, and with another group of its own', async () => {
    expect(await refusalOf(() => cageIdentity(null))).toMatchObject({ failingCall: 'cage uid' })
    expect(await refusalOf(() => cageIdentity({ uid: 61_184, gid: 0 }))).toMatchObject({
      failingCall: 'cage gid',
    })
  })

  test('refuses a bwrap that others could change, or that is set-id', async () => {
    const modeOf = (mode: number, name: string) => refusalOf(() => findBubblewrap(place(name, null, mode)))
    expect(await modeOf(0o775, 'group')).toMatchObject({ failingCall: 'bwrap mode' })
    expect(await modeOf(0o757, 'other')).toMatchObject({ failingCall: 'bwrap mode' })
    expect(await modeOf(0o4755, 'setuid')).toMatchObject({ failingCall: 'bwrap mode' })
    expect(await modeOf(0o2755, 'setgid')).toMatchObject({ failingCall: 'bwrap mode' })
  })

  test('refuses a bwrap of another owner, and one in a folder of another', async () => {
    const path = place('foreign', null, 0o755)
    chownSync(path, 61_184, 61_184)
    expect(await refusalOf(() => findBubblewrap(path))).toMatchObject({ failingCall: 'bwrap owner' })
    const open = join(folder.path, 'open')
    mkdirSync(open)
    chmodSync(open, 0o777)
    copyFileSync('/usr/bin/bwrap', join(open, 'bwrap'))
    symlinkSync(join(open, 'bwrap'), join(folder.path, 'link'))
    expect(await refusalOf(() => findBubblewrap(join(folder.path, 'link')))).toMatchObject({
      failingCall: 'bwrap mode',
    })
  })

  test('names what bwrap said when the machine denies namespaces, and runs nothing', async () => {
    const fake = place(
      'denied',
      '#!/bin/sh\necho "bwrap: setting up uid map: Permission denied" >&2\nexit 1\n',
      0o755,
    )
    const refusal = await refusalOf(() => openTestCage({ tool: nothing }, { bubblewrapPath: fake }))
    expect(refusal.message).toContain('"bwrap: setting up uid map: Permission denied"')
  })

  test('is not fooled by a bwrap that only runs its command', async () => {
    const says = "#!/usr/bin/python3\nimport os, time\nos.write(12, b'ready')\ntime.sleep(5)\n"
    const fake = place('runner', says, 0o755)
    const refusal = await refusalOf(() => openTestCage({ tool: nothing }, { bubblewrapPath: fake }))
    expect(refusal.failingCall).toMatch(/^census of/)
  })
})
