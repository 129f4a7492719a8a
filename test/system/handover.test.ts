import {
  chmodSync,
  chownSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { BrokerError } from '../../protocol/errors.js'
import { Handover } from '../../system/handover.js'
import { makeInstallation, makeSocketFolders } from '../../system/installation.js'
import { layoutOf } from '../../system/layout.js'
import { SKIP_REASONS } from '../support/skips.js'
import { testWhen } from '../support/when.js'

const isRoot = process.geteuid?.() === 0
const own = { uid: process.geteuid?.() ?? 0, gid: process.getegid?.() ?? 0 }
const other = isRoot ? { uid: 63_901, gid: 63_902 } : own
let place: string

beforeEach(() => {
  place = realpathSync(mkdtempSync(join(tmpdir(), 'chio-handover-')))
  chmodSync(place, 0o755)
})
afterEach(() => rmSync(place, { recursive: true, force: true }))

function facts(path: string) {
  const { mode, uid, gid } = lstatSync(path)
  return { mode: mode & 0o7777, uid, gid }
}

describe('a handover', () => {
  test('keeps folder and file ours, closed to others, until it is complete', () => {
    const handover = new Handover()
    const folder = join(place, 'host')
    const file = join(folder, 'caller.key')
    handover.folder(folder, other, 0o710)
    handover.file(file, other)
    writeFileSync(file, 'x', { mode: 0o600 })
    expect([facts(folder), facts(file)]).toEqual([
      { ...own, mode: 0o700 },
      { ...own, mode: 0o600 },
    ])
    handover.complete()
    expect([facts(folder), facts(file)]).toEqual([
      { ...other, mode: 0o710 },
      { ...other, mode: 0o600 },
    ])
  })

  testWhen(
    isRoot,
    SKIP_REASONS.needsRoot,
    'makes nothing inside a folder that is another uid already',
    () => {
      mkdirSync(join(place, 'host'))
      chownSync(join(place, 'host'), other.uid, other.gid)
      const handover = new Handover()
      handover.folder(join(place, 'host'), other, 0o700)
      expect(() => handover.folder(join(place, 'host', 'keys'), other, 0o700)).toThrow(BrokerError)
      expect(() => handover.file(join(place, 'host', 'caller.key'), other)).toThrow(
        /expected a directory of uid 0/,
      )
    },
  )

  test('does not take a link for a folder', () => {
    mkdirSync(join(place, 'real'))
    symlinkSync(join(place, 'real'), join(place, 'link'))
    const handover = new Handover()
    expect(() => handover.folder(join(place, 'link'), other, 0o700)).toThrow(/another kind of file/)
    expect(() => handover.folder(join(place, 'link', 'keys'), other, 0o700)).toThrow(/another kind of file/)
  })

  testWhen(isRoot, SKIP_REASONS.needsRoot, 'gives a link itself away, never the file behind it', () => {
    const target = join(place, 'target')
    const file = join(place, 'file')
    writeFileSync(target, 'of root', { mode: 0o600 })
    const handover = new Handover()
    handover.file(file, other)
    symlinkSync(target, file)
    handover.complete()
    expect(facts(target)).toEqual({ ...own, mode: 0o600 })
  })
})

describe('an installation', () => {
  test('ends with every folder and key at its owner, and its socket folders can be made again', () => {
    const layout = layoutOf(join(place, 'state'))
    const cage = isRoot ? { uid: 63_903, gid: 63_903 } : null
    const kernel = isRoot ? { uid: 63_904, gid: 63_904 } : own
    const identities = { broker: other, kernel, cage }
    const client = { uid: isRoot ? 63_905 : own.uid, gid: isRoot ? 63_905 : own.gid, gids: [own.gid] }
    const plan = { layout, identities, administrator: own, clients: [client], localProviders: [] }
    makeInstallation({ ...plan, tenantScope: 'test' })
    const { uid, gid } = client
    const host = join(place, 'state', 'host', String(uid))
    const expected = {
      [layout.broker.directory]: { ...other, mode: 0o700 },
      [layout.broker.masterKey]: { ...other, mode: 0o600 },
      [layout.broker.config]: { ...other, mode: 0o600 },
      [layout.kernel.keys.issuer]: { ...kernel, mode: 0o600 },
      [layout.adminKey]: { ...own, mode: 0o600 },
      [layout.pins]: { ...own, mode: 0o644 },
      [layout.kernelPublicKey]: { ...own, mode: 0o644 },
      [host]: { uid, gid, mode: 0o700 },
      [join(host, 'keys')]: { uid, gid, mode: 0o700 },
      [join(host, 'keys', 'caller.key')]: { uid, gid, mode: 0o600 },
      [join(place, 'state', 'run', 'broker')]: { ...other, mode: isRoot ? 0o710 : 0o700 },
      [layout.state]: { ...own, mode: isRoot ? 0o711 : 0o700 },
    }
    expect(Object.fromEntries(Object.keys(expected).map(path => [path, facts(path)]))).toEqual(expected)
    makeSocketFolders(layout, identities)
    expect(facts(join(place, 'state', 'run', 'broker'))).toEqual(
      expected[join(place, 'state', 'run', 'broker')],
    )
  })
})
