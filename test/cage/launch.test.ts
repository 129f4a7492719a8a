/**
 * The launcher: which bwrap it takes, as whom it launches, from which thread, and with how few descriptors.
 */
import { chmodSync, chownSync, copyFileSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { afterAll, describe, expect, test } from 'vitest'
import { findBubblewrap } from '../../cage/bubblewrap.js'
import { cageIdentity } from '../../cage/identity.js'
import { isRoot, openFolder, openTestCage, refusalOf, testIdentity } from '../support/cage.js'
import { runWith } from '../support/descriptors.js'
import { SKIP_REASONS } from '../support/skips.js'
import { describeWhen } from '../support/when.js'

// Twenty-eight launches in one of the tests, each some 15 ms on an idle machine and much more on a busy one.
const folder = openFolder()
afterAll(() => folder.remove())

const nothing = { path: '/usr/bin/true', argv: ['true'] }

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

describe('a launcher that runs out of descriptors', () => {
  /** Leaves so many numbers free, tries a whole launch, and counts what stayed open. */
  const SCRIPT = `
    import { openSync, closeSync, readdirSync } from 'node:fs'
    import { openCage, cagePolicy } from ${JSON.stringify(new URL('../../dist/cage/index.js', import.meta.url).href)}
    const policy = cagePolicy({ tool: { path: '/usr/bin/true', argv: ['true'] }, identity: ${JSON.stringify(testIdentity)} })
    await (await openCage(policy)).close()
    const count = () => readdirSync('/proc/self/fd').length
    const answers = []
    for (let free = 0; free < 28; free++) {
      const taken = []
      try { for (;;) taken.push(openSync('/dev/null')) } catch {}
      taken.splice(0, free).forEach(fd => closeSync(fd))
      const answer = await openCage(policy).then(async c => (await c.close(), 'open'), e => e.code + ' ' + e.errnoName)
      taken.forEach(fd => closeSync(fd))
      await new Promise(resolve => setImmediate(resolve))
      answers.push(answer + ' ' + count())
    }
    console.log(JSON.stringify(answers))`

  test('is refused with EMFILE at every step, and keeps nothing open', () => {
    const node = `ulimit -n 300; exec "$0" --input-type=module -e "$1"`
    const { stdout, stderr } = runWith('/bin/sh', ['-c', node, process.execPath, SCRIPT])
    expect(stderr).toBe('')
    const answers = (JSON.parse(stdout) as string[]).map(answer => answer.split(' '))
    const [refused, opened] = ['cage_refused', 'open'].map(code =>
      answers.filter(([first]) => first === code),
    )
    expect([refused!.length > 5, opened!.length > 5, refused!.length + opened!.length]).toEqual([
      true,
      true,
      28,
    ])
    expect(new Set(refused!.map(([, errno]) => errno))).toEqual(new Set(['EMFILE']))
    expect(new Set(answers.map(answer => answer.at(-1))).size).toBe(1)
  })
})

test('a launcher whose limit leaves no slot for the one exec is told which to raise', () => {
  const script = `
    import { openCage, cagePolicy } from ${JSON.stringify(new URL('../../dist/cage/index.js', import.meta.url).href)}
    const tool = { path: '/usr/bin/true', argv: ['true'] }
    const identity = ${JSON.stringify(testIdentity)}
    for (const exec of ['once', 'allowed']) {
      const opened = openCage(cagePolicy({ tool, exec, identity }))
      console.log(await opened.then(async cage => (await cage.close(), 'open'), error => error.message))
    }`
  const node = `ulimit -n 200; exec "$0" --input-type=module -e "$1"`
  const { stdout, stderr } = runWith('/bin/sh', ['-c', node, process.execPath, script])
  expect(stderr).toBe('')
  expect(stdout.trim().split('\n')).toEqual([
    'cage refused: open files: expected a hard limit of at least 256 for a tool that executes once, got a lower one; raise it: ulimit -Hn 1024',
    'open',
  ])
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
