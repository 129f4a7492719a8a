import { randomBytes } from 'node:crypto'
import {
  chmodSync,
  chownSync,
  closeSync,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { sealedMemfd, pipe } from '../../native/index.js'
import { readKey, writeKeyFile } from '../../system/key-file.js'
import { startChild } from '../support/compiled-child.js'
import { SKIP_REASONS } from '../support/skips.js'
import { makeSocketFolder, type SocketFolder } from '../support/test-listener.js'
import { testWhen } from '../support/when.js'

const isRoot = process.geteuid?.() === 0
let place: SocketFolder
let file: string
let key: Uint8Array

beforeEach(() => {
  place = makeSocketFolder()
  file = join(place.folder, 'master.key')
  key = new Uint8Array(randomBytes(32))
})
afterEach(() => {
  delete process.env['CREDENTIALS_DIRECTORY']
  place.remove()
})

describe('a key file', () => {
  test('is written once, 0600, and read back', () => {
    writeKeyFile(file, key)
    expect(readKey({ file }, 'master key')).toEqual(key)
    expect(lstatSync(file).mode & 0o7777).toBe(0o600)
    expect(() => writeKeyFile(file, key)).toThrow(/EEXIST/)
    expect(readdirSync(place.folder)).toEqual(['master.key'])
  })

  test.each([31, 33, 0])('of %i bytes is refused', length => {
    writeFileSync(file, Buffer.alloc(length), { mode: 0o600 })
    expect(() => readKey({ file }, 'master key')).toThrow(`expected 32 bytes, got ${length}`)
    expect(() => writeKeyFile(`${file}2`, new Uint8Array(length))).toThrow(RangeError)
  })

  test('of nothing but zeros is refused: what a disk leaves of a file that was never synced', () => {
    writeKeyFile(file, new Uint8Array(32))
    expect(() => readKey({ file }, 'master key')).toThrow(/expected random bytes, got only zeros/)
  })

  test.each([0o640, 0o604, 0o400, 0o700, 0o644])('of mode %o is refused', mode => {
    writeKeyFile(file, key)
    chmodSync(file, mode)
    expect(() => readKey({ file }, 'master key')).toThrow(/expected mode 0600/)
  })

  test('with a second link, or reached by a link, is refused', () => {
    writeKeyFile(file, key)
    symlinkSync(file, `${file}.link`)
    expect(() => readKey({ file: `${file}.link` }, 'master key')).toThrow(/symbolic link/)
    linkSync(file, `${file}.twin`)
    expect(() => readKey({ file }, 'master key')).toThrow(/expected one link, got 2/)
  })

  test('that is a folder, a FIFO or a device is refused without waiting', () => {
    mkdirSync(file)
    expect(() => readKey({ file }, 'master key')).toThrow(/regular file/)
    rmSync(file, { recursive: true })
    spawnSync('mkfifo', ['-m', '600', file])
    expect(() => readKey({ file }, 'master key')).toThrow(/regular file/)
    expect(() => readKey({ file: '/dev/zero' }, 'master key')).toThrow(/regular file/)
  })

  test('in a folder that others may write to is refused', () => {
    const open = join(place.folder, 'open')
    mkdirSync(open)
    chmodSync(open, 0o777)
    const nested = join(open, 'keys')
    mkdirSync(nested, { mode: 0o700 })
    writeKeyFile(join(nested, 'a.key'), key)
    expect(() => readKey({ file: join(nested, 'a.key') }, 'master key')).toThrow(/no writing by others/)
  })

  testWhen(isRoot, SKIP_REASONS.needsRoot, 'of another uid is refused', () => {
    writeKeyFile(file, key)
    chownSync(file, 61_193, 61_193)
    expect(() => readKey({ file }, 'master key')).toThrow(/owner uid 0, got 61193/)
  })

  test('is refused without a byte of it in the sentence', () => {
    writeFileSync(file, `${key.toString()} canary-key`, { mode: 0o600 })
    expect(() => readKey({ file }, 'master key')).toThrow(expect.not.stringContaining('canary') as never)
  })
})

describe('a key descriptor', () => {
  test('that is a sealed memfd of 32 bytes is read and closed', () => {
    const fd = sealedMemfd('key', key)
    expect(readKey({ fd }, 'master key')).toEqual(key)
    expect(() => closeSync(fd)).toThrow(/EBADF/)
  })

  test.each([31, 33])('of %i bytes is refused', length => {
    const fd = sealedMemfd('key', new Uint8Array(length))
    expect(() => readKey({ fd }, 'master key')).toThrow(/32 bytes/)
  })

  test('that is a file, a pipe, or not open is refused, and closed all the same', () => {
    writeKeyFile(file, key)
    const fd = openSync(file, 'r')
    expect(() => readKey({ fd }, 'master key')).toThrow(/master key refused/)
    expect(() => closeSync(fd)).toThrow(/EBADF/)
    const [read, write] = pipe()
    expect(() => readKey({ fd: read }, 'master key')).toThrow(/regular file/)
    closeSync(write)
    expect(() => readKey({ fd: 9_999 }, 'master key')).toThrow(/EBADF/)
  })

  test.each([0, 1, 2, -1, 1.5])('%d is refused as an argument', fd => {
    expect(() => readKey({ fd }, 'master key')).toThrow(RangeError)
  })

  test('whose memfd lacks a seal is refused', () => {
    const program = [
      'import fcntl, os, sys',
      'fd = os.memfd_create("key", os.MFD_ALLOW_SEALING)',
      'os.write(fd, b"k" * 32)',
      'fcntl.fcntl(fd, 1033, 0x0f & ~int(sys.argv[2]))',
      'os.dup2(fd, 3)',
      'os.execv(sys.argv[1], [sys.argv[1], "--input-type=module", "-e", sys.argv[3]])',
    ].join('\n')
    const script = `const { readKey } = await import('${new URL('../../dist/system/key-file.js', import.meta.url).href}')
      try { readKey({ fd: 3 }, 'k'); console.log('read') } catch (error) { console.log(error.code, error.message) }`
    for (const seal of [1, 2, 4, 8]) {
      const ended = spawnSync('/usr/bin/python3', ['-c', program, process.execPath, String(seal), script])
      expect(ended.stdout.toString(), `seal ${seal}`).toMatch(/^custody .*all four seals/)
    }
  })

  testWhen(isRoot, SKIP_REASONS.needsRoot, 'made by root is read by a daemon of another uid', async () => {
    const fd = sealedMemfd('key', key)
    const child = startChild(
      `const { readKey } = await compiled('system/key-file')
       try { say({ key: [...readKey({ fd: 3 }, 'k')], uid: process.geteuid() }) } catch (error) { say({ code: error.code, message: error.message }) }`,
      [],
      {
        inherited: [fd],
        wrapper: ['setpriv', '--reuid', '61193', '--regid', '61193', '--clear-groups', '--'],
      },
    )
    expect(await child.next()).toEqual({ key: [...key], uid: 61_193 })
    closeSync(fd)
    await child.ended()
  })
})

describe('a credential of the service manager', () => {
  const provide = (mode: number, length = 32): void => {
    process.env['CREDENTIALS_DIRECTORY'] = place.folder
    writeFileSync(join(place.folder, 'master'), key.subarray(0, length), { mode: 0o600 })
    chmodSync(join(place.folder, 'master'), mode)
  }

  test.each([0o400, 0o440])('of mode %o is read', mode => {
    provide(mode)
    expect(readKey({ credential: 'master' }, 'master key')).toEqual(key)
  })

  test.each([0o600, 0o444, 0o640])('of mode %o is refused', mode => {
    provide(mode)
    expect(() => readKey({ credential: 'master' }, 'master key')).toThrow(/mode 0400 or 0440/)
  })

  test.each(['../master', '/etc/passwd', '.', '..', '', 'a/b', 'a\0b'])('named %j is refused', credential => {
    provide(0o400)
    expect(() => readKey({ credential }, 'master key')).toThrow(/credential name|regular file/)
  })

  test('is refused where no directory is given', () => {
    expect(() => readKey({ credential: 'master' }, 'master key')).toThrow(/CREDENTIALS_DIRECTORY/)
    process.env['CREDENTIALS_DIRECTORY'] = 'relative'
    expect(() => readKey({ credential: 'master' }, 'master key')).toThrow(/CREDENTIALS_DIRECTORY/)
  })
})
