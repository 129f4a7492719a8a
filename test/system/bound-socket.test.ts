import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { connect, createServer } from 'node:net'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Listener } from '../../system/listener.js'
import { type CompiledChild, startChild } from '../support/compiled-child.js'
import { fullCount } from '../support/counts.js'
import { SKIP_REASONS } from '../support/skips.js'
import { makeSocketFolder, plainClient, serve, type SocketFolder } from '../support/test-listener.js'
import { testWhen } from '../support/when.js'
import { standStill } from '../support/stop.js'

let place: SocketFolder
const listeners: Listener[] = []
const children: CompiledChild[] = []

beforeEach(() => {
  place = makeSocketFolder()
})
afterEach(async () => {
  for (const listener of listeners.splice(0)) await listener.close()
  for (const child of children.splice(0)) await child.kill()
  place.remove()
})

const isRoot = process.geteuid?.() === 0
const untilEnd = async (connection: { ended: Promise<unknown> }): Promise<void> =>
  void (await connection.ended)

async function serveHere(options: Partial<Parameters<typeof serve>[1]> = {}): Promise<Listener> {
  const listener = await serve(place.path, { onConnection: untilEnd, ...options })
  listeners.push(listener)
  return listener
}

const DAEMON = `
const { systemClock } = await compiled('native/clock')
const { listen } = await compiled('system/listener')
try {
  const listener = await listen({
    path: args[0], socketGid: null, clock: systemClock, mode: 'exchange', admit: () => true, onFault: () => {},
    onConnection: async connection => { await connection.ended },
  })
  say({ listening: true })
  process.stdin.on('end', () => listener.close()).resume()
} catch (error) {
  say({ code: error.code })
}`

function startDaemon(): CompiledChild {
  const child = startChild(DAEMON, [place.path])
  children.push(child)
  return child
}

describe('a socket', () => {
  test('is private from its first instant, whatever the umask, and alone in its folder', async () => {
    const umask = process.umask(0)
    try {
      await serveHere()
    } finally {
      process.umask(umask)
    }
    expect(lstatSync(place.path).mode & 0o7777).toBe(0o600)
    expect(readdirSync(place.folder)).toEqual(['sock'])
  })

  test('has its mode before listen: strace sees no chmod, and one bind under the umask', async () => {
    const trace = join(place.folder, '..', `trace-${process.pid}`)
    const child = startChild(DAEMON, [place.path], {
      wrapper: ['strace', '-f', '-o', trace, '-e', 'trace=bind,listen,umask,chmod,fchmod,fchmodat'],
    })
    children.push(child)
    await child.next()
    child.process.stdin?.end()
    await child.ended()
    const calls = [...readFileSync(trace, 'utf8').matchAll(/ (umask|bind|listen|f?chmod\w*)\(([^)]*)/g)].map(
      ([, name, parameters]) => (name === 'umask' ? `umask ${parameters}` : name),
    )
    unlinkSync(trace)
    const bind = calls.indexOf('bind')
    expect(calls.slice(bind - 1, bind + 2)).toEqual(['umask 0177', 'bind', 'listen'])
    expect(calls.some(name => name?.includes('chmod'))).toBe(false)
  })

  test('accepts a path at the limit and refuses one over, before anything is bound', async () => {
    const at = join(place.folder, 'x'.repeat(100 - 4 - place.folder.length - 1))
    const listener = await serve(at, { onConnection: untilEnd })
    await listener.close()
    await expect(serve(`${at}12345`, { onConnection: untilEnd })).rejects.toThrow(RangeError)
    expect(readdirSync(place.folder)).toEqual([])
  })

  test('is refused for a group that is not the process’s own', async () => {
    await expect(serve(place.path, { onConnection: untilEnd, socketGid: 61_199 })).rejects.toMatchObject({
      code: 'custody',
    })
  })

  testWhen(isRoot, SKIP_REASONS.needsRoot, 'is 0660 of its group for clients of another uid', async () => {
    spawnSync('chmod', ['0710', place.folder])
    const listener = await serve(place.path, { onConnection: untilEnd, socketGid: 0 })
    listeners.push(listener)
    expect(lstatSync(place.path).mode & 0o7777).toBe(0o660)
  })

  test.each([0o755, 0o770, 0o1700])('is refused in a folder of mode %o', async mode => {
    spawnSync('chmod', [mode.toString(8), place.folder])
    await expect(serve(place.path, { onConnection: untilEnd })).rejects.toMatchObject({ code: 'custody' })
    expect(existsSync(place.path)).toBe(false)
  })
})

describe('who serves', () => {
  test('is refused to a second daemon, which leaves the first one’s socket', async () => {
    await serveHere()
    const inode = lstatSync(place.path).ino
    const second = startDaemon()
    expect(await second.next()).toEqual({ code: 'another_instance' })
    expect(lstatSync(place.path).ino).toBe(inode)
    await plainClient(place.path)
  })

  test('is refused while the daemon that serves is stopped', async () => {
    const first = startDaemon()
    await first.next()
    await standStill(first.process.pid ?? 0)
    await expect(serve(place.path, { onConnection: untilEnd })).rejects.toMatchObject({
      code: 'another_instance',
    })
  })

  test('passes on after a kill -9, over the stale socket', async () => {
    const first = startDaemon()
    await first.next()
    await first.kill('SIGKILL')
    expect(existsSync(place.path)).toBe(true)
    await serveHere()
    await plainClient(place.path)
  })

  test('passes on although somebody listens under a name that forges the line of ours', async () => {
    const first = startDaemon()
    await first.next()
    await first.kill('SIGKILL')
    const forger = createServer()
    const line = `0: 00000002 00000000 00010000 0001 01 1 ${place.path}`
    // The last line break keeps the zeros that Node pads the name with out of the line.
    forger.listen(`\0\n${line}\n`)
    await once(forger, 'listening')
    expect(readFileSync('/proc/net/unix', 'utf8').split('\n')).toContain(line)
    try {
      await serveHere()
    } finally {
      forger.close()
    }
  })

  test('is whoever listens on the inode, under whatever name, and it hears nothing of the question', async () => {
    let connections = 0
    const holder = createServer(() => connections++).listen(`${place.path}.before`)
    await once(holder, 'listening')
    renameSync(`${place.path}.before`, place.path)
    try {
      await expect(serve(place.path, { onConnection: untilEnd })).rejects.toMatchObject({
        code: 'another_instance',
      })
      const heard = once(holder, 'connection')
      const client = connect(place.path)
      await heard
      client.destroy()
      expect(connections).toBe(1)
    } finally {
      holder.close()
    }
  })

  test('is exactly one of many who start at once', async () => {
    const many = Array.from({ length: fullCount(6, 20) }, () => startDaemon())
    const said = await Promise.all(many.map(child => child.next()))
    expect(said.filter(line => line['listening'] === true)).toHaveLength(1)
    expect(said.filter(line => line['code'] === 'another_instance')).toHaveLength(many.length - 1)
    await plainClient(place.path)
  })
})

describe('what stands at the path', () => {
  test.each([
    ['a regular file', () => writeFileSync(place.path, 'kept')],
    ['a symbolic link', () => symlinkSync('/dev/null', place.path)],
    ['a folder', () => mkdirSync(place.path)],
  ])('is never removed when it is %s', async (_name, make) => {
    make()
    const before = lstatSync(place.path).ino
    await expect(serve(place.path, { onConnection: untilEnd })).rejects.toMatchObject({ code: 'custody' })
    expect(lstatSync(place.path).ino).toBe(before)
  })

  testWhen(
    isRoot,
    SKIP_REASONS.needsRoot,
    'is never removed when it is a socket of another uid',
    async () => {
      const foreign = createServer().listen(place.path)
      await once(foreign, 'listening')
      spawnSync('chown', ['61191', place.path])
      await expect(serve(place.path, { onConnection: untilEnd })).rejects.toThrow(/socket of our uid/)
      expect(existsSync(place.path)).toBe(true)
      foreign.close()
    },
  )

  test('is removed at the end when it is ours', async () => {
    const listener = await serveHere()
    await listener.close()
    await listener.close()
    expect(readdirSync(place.folder)).toEqual([])
  })

  test('stays at the end when it is another inode', async () => {
    const listener = await serveHere()
    renameSync(place.path, join(place.folder, 'aside'))
    writeFileSync(place.path, 'of somebody else')
    await listener.close()
    expect(readFileSync(place.path, 'utf8')).toBe('of somebody else')
  })
})
