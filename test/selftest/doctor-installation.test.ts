// What the doctor says of an installation and of the user who looks at it. A real installation is made and broken,
// file by file; users and groups that cannot be made in a test are given as found values.
import {
  appendFileSync,
  chmodSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Check } from '../../selftest/doctor/check.js'
import { findConfiguration, judgeConfiguration } from '../../selftest/doctor/configuration.js'
import { examine } from '../../selftest/doctor/doctor.js'
import { findGroups, type GroupsFound, judgeGroups } from '../../selftest/doctor/groups.js'
import { findInstallation, type Installation, judgeInstallation } from '../../selftest/doctor/installation.js'
import { findKeyFiles, judgeKeyFiles, type KeyFileFound } from '../../selftest/doctor/key-files.js'
import { judgeLoopbackProviders } from '../../selftest/doctor/loopback-providers.js'
import { findSockets, judgeSockets } from '../../selftest/doctor/sockets.js'
import { findUsers, judgeUsers, type UsersFound } from '../../selftest/doctor/users.js'
import { type Layout, layoutOf } from '../../system/layout.js'
import { expectLine, ownInstallation } from '../support/doctored-installation.js'

let folder: string
let layout: Layout
let installation: Installation

beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'chio-doctor-test-')))
  layout = ownInstallation(join(folder, 'state'))
  const found = findInstallation(layout)
  if (found.kind !== 'made') throw new Error(`expected an installation, got ${found.kind}`)
  installation = found.installation
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

/** As an operator would with an editor. */
function edit(path: string, change: (document: Record<string, unknown>) => void): void {
  const document = JSON.parse(readFileSync(path, 'utf8')) as Record<string, unknown>
  change(document)
  writeFileSync(path, JSON.stringify(document))
}

describe('an installation', () => {
  test('that is none is no fault, and the machine alone is judged', async () => {
    const none = layoutOf(join(folder, 'elsewhere'))
    expectLine(judgeInstallation(findInstallation(none)), 'ok', /none at/, /chio init/)
    const names = (await examine({ layout: none, environment: {} })).map(({ name }) => name)
    expect(names).not.toContain('keys')
    expect(names.at(-1)).toBe('cage')
  })

  test('that stands is judged on every side, the cage last', async () => {
    expect(judgeInstallation(findInstallation(layout)).verdict).toBe('ok')
    const checks = await examine({ layout, environment: {} })
    expect(checks.map(({ name }) => name)).toEqual(
      (
        'platform user-namespaces bubblewrap seccomp peer-handles clocks durable-writes environment ' +
        'installation users sockets groups keys configuration loopback-providers caller-routes cage'
      ).split(' '),
    )
    expect(checks.filter(({ verdict }) => verdict === 'missing')).toEqual([])
  })

  test('whose list of uids is damaged is missing', () => {
    writeFileSync(layout.identities, '{}')
    expectLine(judgeInstallation(findInstallation(layout)), 'missing', /chio init wrote/, /chio init --state/)
  })

  test('of another user is missing', () => {
    const check = judgeInstallation({ kind: 'hidden', state: '/state' })
    expectLine(check, 'missing', /another user/, /--state/)
  })
})

describe('users', () => {
  const id = (uid: number) => ({ uid, gid: uid })
  const apart: UsersFound = {
    ownUid: 1_000,
    overflowUid: 65_534,
    identities: { broker: id(901), kernel: id(902), cage: id(903) },
  }

  test('one uid for all is weaker, in the sentence that init says', () => {
    const check = judgeUsers(findUsers(installation.identities))
    expectLine(
      check,
      'weaker',
      /protects against the caged tool only, not against other processes/,
      /as root/,
    )
  })

  test('uids of their own are ok, and so is no installation', () => {
    expectLine(judgeUsers(apart), 'ok', /broker 901, kernel 902, cage 903/, null)
    expectLine(judgeUsers({ ...apart, identities: null }), 'ok', /uid 1000/, null)
  })

  test('the overflow uid is nobody in particular', () => {
    expectLine(judgeUsers({ ...apart, ownUid: 65_534 }), 'missing', /everybody unmapped/, /mapped/)
    const identities = { broker: id(901), kernel: id(65_534), cage: null }
    expectLine(judgeUsers({ ...apart, identities }), 'missing', /overflow uid/, /chio init/)
  })

  test('a cage under the uid of root or of a daemon is missing', () => {
    const cage = (uid: number) => ({ broker: id(901), kernel: id(902), cage: id(uid) })
    expectLine(judgeUsers({ ...apart, identities: cage(0) }), 'missing', /as root/, /chio init/)
    expectLine(judgeUsers({ ...apart, identities: cage(901) }), 'missing', /shares uid 901/, /chio init/)
  })
})

describe('groups', () => {
  const member: GroupsFound = {
    ownUid: 1_000,
    userName: 'alice',
    isClient: true,
    isAdministrator: false,
    needed: [901, 902],
    active: [1_000, 901, 902],
    listed: [1_000, 901, 902],
  }

  test('of a single user are not needed', () => {
    expectLine(judgeGroups(findGroups(installation)), 'ok', /no group is needed/, null)
  })

  test('that are active are ok; root needs none; an administrator runs no tools', () => {
    expectLine(judgeGroups(member), 'ok', /901 and 902/, null)
    expectLine(judgeGroups({ ...member, ownUid: 0, active: [0] }), 'ok', /needs no group/, null)
    const administrator = { ...member, ownUid: 0, isClient: false, isAdministrator: true }
    expectLine(judgeGroups(administrator), 'ok', /no client/, null)
  })

  test('that the user database has and this session not: log in again', () => {
    const check = judgeGroups({ ...member, active: [1_000, 902] })
    expectLine(check, 'missing', /group 901 not active in this session/, /^log in again$/)
  })

  test('that nobody gave: usermod, with its numbers', () => {
    const check = judgeGroups({ ...member, active: [1_000], listed: [1_000] })
    expectLine(check, 'missing', /not in group 901, 902/, /usermod --append --groups 901,902 alice/)
  })

  test('a user whom init did not name is told so', () => {
    const check = judgeGroups({ ...member, isClient: false })
    expectLine(check, 'missing', /uid 1000 is no client/, /chio init --client USER/)
  })
})

describe('keys', () => {
  const judge = (): Check => judgeKeyFiles(findKeyFiles(installation))

  test('as init made them are ok, all nine', () => {
    expectLine(judge(), 'ok', /^9 key files/, null)
  })

  test.each<[string, (path: string) => void, RegExp, RegExp]>([
    ['readable by others', path => chmodSync(path, 0o644), /mode 0644, not 0600/, /^chmod 0600/],
    ['with a second name', path => linkSync(path, `${path}.copy`), /2 links/, /find .* -samefile/],
    ['cut short', path => truncateSync(path, 31), /31 bytes, not 32/, /backup/],
    ['gone', unlinkSync, /is missing/, /backup/],
    [
      'behind a symbolic link',
      path => {
        renameSync(path, `${path}.real`)
        symlinkSync(`${path}.real`, path)
      },
      /no regular file/,
      /backup/,
    ],
  ])('%s are missing', (_name, spoil, found, remedy) => {
    for (const path of [layout.broker.masterKey, layout.kernel.keys.issuer, layout.adminKey]) {
      spoil(path)
      const check = judge()
      expectLine(check, 'missing', found, remedy)
    }
    expect(judge().found).toContain('and 2 more')
  })

  test('of another owner are missing, hidden ones are said to be', () => {
    const files = findKeyFiles(installation)
    const [first, ...rest] = files as [KeyFileFound, ...KeyFileFound[]]
    const foreign = judgeKeyFiles([{ ...first, ownerUid: first.ownerUid + 1 }, ...rest])
    expectLine(foreign, 'missing', /belongs to uid/, /^chown/)
    const hidden = judgeKeyFiles([{ ...first, look: { kind: 'hidden' } }, ...rest])
    expectLine(hidden, 'ok', /^8 key files.*1 are not ours to see/, /as root/)
  })
})

describe('configuration', () => {
  const judge = (): Check => judgeConfiguration(findConfiguration(installation))

  test('as init wrote it is ok', () => expectLine(judge(), 'ok', /^4 files/, null))

  test.each<[string, () => void, RegExp]>([
    ['that a group may write', () => chmodSync(layout.broker.config, 0o660), /no mode bit of 022/],
    ['that is gone', () => unlinkSync(layout.pins), /pins\.json is missing/],
    ['that is no JSON', () => appendFileSync(layout.kernel.config, '}'), /kernel configuration/],
    ['with a member of its own', () => edit(layout.broker.config, set('extra', 1)), /no member "extra"/],
    ['with a weak key', () => edit(layout.pins, set('kernelKey', '00'.repeat(32))), /kernelKey/],
    [
      'of another broker',
      () => edit(layout.pins, set('brokerReceiptKey', keyOfAnother())),
      /different receipt keys/,
    ],
    ['with another socket', () => edit(layout.broker.config, set('socketPath', '/x')), /different sockets/],
  ])('%s is missing', (_name, spoil, found) => {
    spoil()
    expectLine(judge(), 'missing', found, /./)
  })

  function set(member: string, value: unknown) {
    return (document: Record<string, unknown>): void => void (document[member] = value)
  }

  function keyOfAnother(): string {
    const other = ownInstallation(join(folder, 'other'))
    return (JSON.parse(readFileSync(other.pins, 'utf8')) as { brokerReceiptKey: string }).brokerReceiptKey
  }

  test('loopback providers are shown, and weaken', () => {
    const { broker } = findConfiguration(installation)
    expectLine(judgeLoopbackProviders(broker), 'ok', /none/, null)
    const local = { host: 'api.example.com', port: 443, address: '127.0.0.1', caPem: '' }
    const check = judgeLoopbackProviders({ kind: 'read', document: { localProviders: [local] } })
    expectLine(check, 'weaker', /api\.example\.com:443 at 127\.0\.0\.1/, /localProviders/)
    expectLine(judgeLoopbackProviders({ kind: 'hidden' }), 'ok', /not ours to see/, null)
  })
})

describe('sockets', () => {
  const judge = (): Check => judgeSockets(findSockets(layout, installation.identities))

  test('with short paths in private folders are ok, served or not', async () => {
    expectLine(judge(), 'ok', /0 are there now/, null)
    const server = createServer().listen(layout.broker.socket)
    await new Promise(resolve => server.once('listening', resolve))
    chmodSync(layout.broker.socket, 0o600)
    expectLine(judge(), 'ok', /1 are there now/, null)
    chmodSync(layout.broker.socket, 0o666)
    expectLine(judge(), 'missing', /mode 0600/, /chio up/)
    await new Promise(resolve => server.close(resolve))
  })

  test('in a folder of everybody are missing', () => {
    chmodSync(dirname(layout.kernel.hostSocket), 0o777)
    expectLine(judge(), 'missing', /mode 0700, got mode 0777/, /chio up/)
  })

  test('whose path does not fit are missing before anything is made', () => {
    const long = join(folder, 'x'.repeat(90))
    mkdirSync(long)
    expectLine(judgeSockets(findSockets(layoutOf(long), null)), 'missing', /100 fit/, /shorter/)
  })
})
