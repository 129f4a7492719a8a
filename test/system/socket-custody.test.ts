import {
  chmodSync,
  chownSync,
  linkSync,
  mkdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Listener } from '../../system/listener.js'
import { assertSameSocket, assertSocketCustody, makeSocketDirectory } from '../../system/socket-custody.js'
import { SKIP_REASONS } from '../support/skips.js'
import { makeSocketFolder, serve, type SocketFolder } from '../support/test-listener.js'
import { describeWhen } from '../support/when.js'

const isRoot = process.geteuid?.() === 0
const OWNER = { ownerUid: process.geteuid?.() ?? 0, socketGid: null }
const STRANGER = 61_192

let place: SocketFolder
let directory: string
let path: string
let listener: Listener

beforeEach(async () => {
  place = makeSocketFolder()
  directory = join(place.folder, 'run')
  path = join(directory, 'sock')
  makeSocketDirectory(directory, OWNER)
  listener = await serve(path, { onConnection: async connection => void (await connection.ended) })
})
afterEach(async () => {
  await listener.close()
  place.remove()
})

const judge = (owner = OWNER): unknown => assertSocketCustody(path, owner)

describe('custody of a socket', () => {
  test('accepts exactly the private one of the pinned owner', () => {
    expect(judge()).toMatchObject({
      inode: expect.any(BigInt) as bigint,
      device: expect.any(BigInt) as bigint,
    })
  })

  test.each([0o660, 0o604, 0o700, 0o622])('refuses a socket of mode %o', mode => {
    chmodSync(path, mode)
    expect(() => judge()).toThrow(/mode 0600/)
  })

  test.each([0o710, 0o701, 0o755, 0o1700])('refuses a folder of mode %o', mode => {
    chmodSync(directory, mode)
    expect(() => judge()).toThrow(/mode 0700/)
  })

  test('refuses another owner, and the overflow uid as the pinned one', () => {
    expect(() => judge({ ownerUid: STRANGER, socketGid: null })).toThrow(/owner uid 61192/)
    expect(() => judge({ ownerUid: 65_534, socketGid: null })).toThrow(/custody/)
  })

  test('refuses what is no socket, a link to one, and a second name', () => {
    linkSync(path, join(directory, 'second'))
    expect(() => judge()).toThrow(/one link, got 2/)
    rmSync(join(directory, 'second'))
    renameSync(path, join(directory, 'real'))
    symlinkSync(join(directory, 'real'), path)
    expect(() => judge()).toThrow(/a socket/)
    rmSync(path)
    writeFileSync(path, '')
    expect(() => judge()).toThrow(/a socket/)
  })

  test('refuses a folder that is reached by a link', () => {
    symlinkSync(directory, join(place.folder, 'link'))
    expect(() => assertSocketCustody(join(place.folder, 'link', 'sock'), OWNER)).toThrow(
      /without symbolic links/,
    )
  })

  test('refuses another inode under the name after connecting', async () => {
    const before = assertSocketCustody(path, OWNER)
    assertSameSocket(path, before)
    renameSync(path, join(directory, 'aside'))
    const other = await serve(join(place.folder, 'other'), { onConnection: async () => {} })
    renameSync(join(place.folder, 'other'), path)
    expect(() => assertSameSocket(path, before)).toThrow(/after connecting/)
    await other.close()
  })

  test.each([
    ['writable by all', 0o777],
    ['writable by all and a group', 0o767],
  ])('refuses an ancestor that is %s', (_name, mode) => {
    chmodSync(place.folder, mode)
    expect(() => judge()).toThrow(/no writing by others/)
  })

  test('accepts an ancestor that is writable by all and sticky, as /tmp is', () => {
    chmodSync(place.folder, 0o1777)
    expect(judge()).toBeDefined()
  })

  test('refuses a path that is relative, not normal, or one byte over the limit', () => {
    expect(() => assertSocketCustody('run/sock', OWNER)).toThrow(TypeError)
    expect(() => assertSocketCustody(`${directory}/../run/sock`, OWNER)).toThrow(TypeError)
    expect(() => assertSocketCustody(`/${'x'.repeat(100)}`, OWNER)).toThrow(/at most 100 bytes, got 101/)
  })
})

describeWhen(isRoot, SKIP_REASONS.needsRoot, 'custody between users', () => {
  const shared = { ownerUid: STRANGER, socketGid: STRANGER + 1 }

  test('makes the folder of another uid and group as 0710', () => {
    const theirs = join(place.folder, 'theirs')
    makeSocketDirectory(theirs, shared)
    makeSocketDirectory(theirs, shared)
    expect(() => makeSocketDirectory(theirs, OWNER)).toThrow(/owner uid 0/)
  })

  test('accepts 0710 and 0660 of exactly the configured group', () => {
    for (const target of [directory, path]) chownSync(target, STRANGER, STRANGER + 1)
    chmodSync(directory, 0o710)
    chmodSync(path, 0o660)
    expect(judge(shared as never)).toBeDefined()
    expect(() => assertSocketCustody(path, { ...shared, socketGid: STRANGER + 2 })).toThrow(/gid 61194/)
    expect(() => assertSocketCustody(path, { ...shared, socketGid: null })).toThrow(/mode 0700/)
  })

  test('refuses an ancestor of a third uid', () => {
    chownSync(place.folder, STRANGER, STRANGER)
    expect(() => judge()).toThrow(/owner uid 0, got 61192/)
  })

  test('refuses an ancestor that a group may write to', () => {
    chownSync(place.folder, 0, STRANGER)
    chmodSync(place.folder, 0o770)
    expect(() => judge()).toThrow(/no writing by a group/)
  })

  test('refuses an ancestor of the overflow uid', () => {
    const nested = join(place.folder, 'nested')
    mkdirSync(nested)
    chownSync(nested, 65_534, 65_534)
    expect(() => makeSocketDirectory(join(nested, 'run'), { ownerUid: 65_534, socketGid: null })).toThrow(
      /custody/,
    )
  })
})
