// What the doctor says of a machine: each line can be ok and can fail. The judging functions are given found values;
// where a fault can be made for real, it is.
import { chmodSync, copyFileSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { findBubblewrapOf, judgeBubblewrap } from '../../selftest/doctor/bubblewrap.js'
import { type Check, isFit, missing, ok, weaker } from '../../selftest/doctor/check.js'
import { type ClocksFound, findClocks, judgeClocks } from '../../selftest/doctor/clocks.js'
import {
  type DurableWritesFound,
  findDurableWrites,
  judgeDurableWrites,
} from '../../selftest/doctor/durable-writes.js'
import { judgeEnvironment } from '../../selftest/doctor/environment.js'
import { findPeerHandle, judgePeerHandle } from '../../selftest/doctor/peer-handles.js'
import { findPlatform, judgePlatform } from '../../selftest/doctor/platform.js'
import { findSeccomp, judgeSeccomp } from '../../selftest/doctor/seccomp.js'
import {
  findUserNamespaces,
  judgeUserNamespaces,
  type UserNamespacesFound,
} from '../../selftest/doctor/user-namespaces.js'
import { SKIP_REASONS } from '../support/skips.js'

const PROFILE = `abi <abi/4.0>,
include <tunables/global>

profile bwrap /usr/bin/bwrap flags=(unconfined) {
  userns,

  include if exists <local/bwrap>
}`
const isRoot = process.geteuid?.() === 0
const folder = realpathSync(mkdtempSync(join(tmpdir(), 'chio-doctor-test-')))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** Verdict and the words that found and remedy must hold. */
function expectLine(check: Check, verdict: Check['verdict'], found: RegExp, remedy: RegExp | null): void {
  expect([check.name, check.verdict]).toEqual([check.name, verdict])
  expect(check.found).toMatch(found)
  if (remedy === null) expect(check.remedy).toBeNull()
  else expect(check.remedy).toMatch(remedy)
}

describe('a machine is fit', () => {
  test('when nothing is missing, weaker lines or not', () => {
    expect(isFit([ok('a', 'x'), weaker('b', 'x', 'y')])).toBe(true)
    expect(isFit([ok('a', 'x'), missing('b', 'x', 'y')])).toBe(false)
  })
})

describe('platform', () => {
  const here = findPlatform()

  test('this one is known', () => expectLine(judgePlatform(here), 'ok', /^linux \d/, null))

  test.each([
    ['kernelRelease', '5.9.16-generic', /5\.10/],
    ['kernelRelease', '4.19.0', /5\.10/],
    ['kernelRelease', 'unknown', /5\.10/],
    ['platform', 'darwin', /Linux/],
    ['architecture', 'riscv64', /x86_64/],
    ['nodeVersion', '20.18.3', /20\.19/],
    ['nodeVersion', '18.20.0', /20\.19/],
  ])('%s %s is missing', (member, value, remedy) => {
    expectLine(judgePlatform({ ...here, [member]: value }), 'missing', new RegExp(value), remedy)
  })

  test.each(['5.10.0', '5.11-rc1', '6.0', '10.0.1'])('Linux %s is enough', kernelRelease => {
    expect(judgePlatform({ ...here, kernelRelease }).verdict).toBe('ok')
  })
})

describe('user namespaces', () => {
  const free: UserNamespacesFound = { maximum: 96_000, unprivilegedClone: null, apparmorRestricts: null }

  test('are read from the kernel', () => {
    expect(findUserNamespaces().maximum).toBeGreaterThan(0)
  })

  test('unrestricted ones are ok', () => {
    expectLine(judgeUserNamespaces(free, true), 'ok', /at most 96000/, null)
    expect(judgeUserNamespaces({ ...free, apparmorRestricts: 0, unprivilegedClone: 1 }, true).verdict).toBe(
      'ok',
    )
  })

  test.each<[string, Partial<UserNamespacesFound>, RegExp]>([
    ['none in the kernel', { maximum: null }, /CONFIG_USER_NS/],
    ['a limit of 0', { maximum: 0 }, /sysctl user\.max_user_namespaces=15000/],
    ["Debian's switch", { unprivilegedClone: 0 }, /sysctl kernel\.unprivileged_userns_clone=1/],
  ])('%s is missing', (_name, found, remedy) => {
    expectLine(judgeUserNamespaces({ ...free, ...found }, false), 'missing', /./, remedy)
  })

  test("Ubuntu's restriction is named with the profile for bwrap alone, and never with switching it off", () => {
    const check = judgeUserNamespaces({ ...free, apparmorRestricts: 1 }, false)
    expectLine(check, 'missing', /kernel\.apparmor_restrict_unprivileged_userns is 1/, /apparmor_parser -r/)
    expect(check.remedy).toContain(`/etc/apparmor.d/bwrap:\n${PROFILE}\n`)
    expect(check.remedy).not.toContain('sysctl')
  })

  test('under that restriction a cage that opens shows that bwrap has its profile', () => {
    expectLine(judgeUserNamespaces({ ...free, apparmorRestricts: 1 }, true), 'ok', /lets bwrap through/, null)
  })
})

describe('bubblewrap', () => {
  function fake(name: string, text: string): string {
    const path = join(folder, name)
    writeFileSync(path, text)
    chmodSync(path, 0o755)
    return path
  }

  test('the one of this machine is ok, with version and digest', () => {
    expectLine(judgeBubblewrap(findBubblewrapOf()), 'ok', /bwrap \d.*sha256 [0-9a-f]{64}$/, null)
  })

  test('one that is not there is to be installed', () => {
    const found = findBubblewrapOf('/usr/bin/no-such-bwrap')
    expectLine(judgeBubblewrap(found), 'missing', /nothing at \/usr\/bin\/no-such-bwrap/, /apt-get install/)
  })

  test('one that another user could change is refused and never run', () => {
    const path = fake('bwrap-of-all', `#!/bin/sh\ntouch ${folder}/ran\necho bubblewrap 0.9.0\n`)
    chmodSync(path, 0o777)
    const check = judgeBubblewrap(findBubblewrapOf(path))
    expectLine(check, 'missing', /writable by root alone|root for/, /chown root:root/)
    expect(check.found).not.toContain('chio doctor')
  })

  test('a setuid one is refused', context => {
    if (!isRoot) context.skip(SKIP_REASONS.needsRoot)
    const path = join(folder, 'bwrap-setuid')
    copyFileSync('/usr/bin/bwrap', path)
    chmodSync(path, 0o4755)
    expectLine(judgeBubblewrap(findBubblewrapOf(path)), 'missing', /set-id/, /chmod 0755/)
  })

  test('an older one, and one that says nothing, are missing', context => {
    if (!isRoot) context.skip(SKIP_REASONS.needsRoot)
    const old = fake('bwrap-old', '#!/bin/sh\necho bubblewrap 0.7.1\n')
    expectLine(judgeBubblewrap(findBubblewrapOf(old)), 'missing', /0\.7\.1/, /0\.8 or later/)
    const mute = fake('bwrap-mute', '#!/bin/sh\nexit 1\n')
    expectLine(judgeBubblewrap(findBubblewrapOf(mute)), 'missing', /does not say/, /0\.8 or later/)
  })

  test('judges the version alone: 0.8 is enough, 0.10 is newer', () => {
    const found = { path: '/usr/bin/bwrap', refusal: null, isRootUnmapped: false, sha256: 'a'.repeat(64) }
    const verdict = (versionText: string | null) => judgeBubblewrap({ ...found, versionText }).verdict
    expect(verdict('bubblewrap 0.8.0')).toBe('ok')
    expect(verdict('bubblewrap 0.10.0')).toBe('ok')
    expect(verdict('bubblewrap 0.7.9')).toBe('missing')
    expect(verdict('something else 1.0')).toBe('missing')
  })

  test('in a user namespace without root nothing is to be given back to root', () => {
    const refusal = 'bwrap owner: expected root for /usr/bin, got uid 65534'
    const found = { path: '/usr/bin/bwrap', refusal, isRootUnmapped: true, versionText: null, sha256: null }
    expectLine(judgeBubblewrap(found), 'missing', /got uid 65534/, /outside of this user namespace/)
  })
})

describe('seccomp', () => {
  test('of this machine is ok', () => expectLine(judgeSeccomp(findSeccomp()), 'ok', /filters/, null))

  test('no filters, or no user notification, is missing', () => {
    expectLine(judgeSeccomp({ actions: null }), 'missing', /no filters/, /CONFIG_SECCOMP_FILTER/)
    const actions = ['kill_process', 'errno', 'allow']
    expectLine(judgeSeccomp({ actions }), 'missing', /^no user_notif$/, /5\.10/)
  })
})

describe('peer handles', () => {
  test('of this machine are ok or weaker, and found on a real socket', () => {
    const found = findPeerHandle()
    expect(found).toMatchObject({ isAlive: true })
    expect(['ok', 'weaker']).toContain(judgePeerHandle(found).verdict)
  })

  test('the number that connected is weaker; no handle is missing', () => {
    expectLine(judgePeerHandle({ source: 'so_peerpidfd', isAlive: true }), 'ok', /SO_PEERPIDFD/, null)
    expectLine(judgePeerHandle({ source: 'pidfd_open', isAlive: true }), 'weaker', /reused/, /6\.5/)
    expectLine(judgePeerHandle({ source: 'so_peerpidfd', isAlive: false }), 'missing', /dead/, /6\.5/)
    expectLine(judgePeerHandle({ errno: 'ENOSYS' }), 'missing', /ENOSYS/, /6\.5/)
  })
})

describe('clocks', () => {
  const good: ClocksFound = {
    source: 'tsc',
    unixMs: Date.UTC(2026, 10, 30),
    bootMs: 50_000,
    uptimeMs: 50_010,
    bootAdvances: true,
  }

  test('of this machine are not missing', () => {
    const found = findClocks()
    expect(found.bootAdvances).toBe(true)
    expect(judgeClocks(found).verdict).not.toBe('missing')
  })

  test.each<[string, Partial<ClocksFound>, Check['verdict'], RegExp]>([
    ['a good one', {}, 'ok', /tsc; CLOCK_BOOTTIME runs/],
    ['an unknown source', { source: null, uptimeMs: null }, 'ok', /unknown source/],
    ['a boot clock that stands', { bootAdvances: false }, 'missing', /stands still/],
    ['a wall clock of 1970', { unixMs: 60_000 }, 'missing', /1970-01-01/],
    ['a boot clock that lost a sleep', { uptimeMs: 90_000 }, 'weaker', /40000 ms apart/],
    ['a coarse source', { source: 'jiffies' }, 'weaker', /steps by milliseconds/],
  ])('%s', (_name, found, verdict, text) => {
    const check = judgeClocks({ ...good, ...found })
    expectLine(check, verdict, text, verdict === 'ok' ? null : /./)
  })
})

describe('durable writes', () => {
  const good: DurableWritesFound = {
    place: '/var/lib/chio',
    fileSystemType: 0xef53,
    freeBytes: 2 ** 33,
    synchronous: 2,
    commitMs: 1,
    fault: null,
  }

  test('a real file reads back FULL after a real commit, and is gone', () => {
    const found = findDurableWrites(folder)
    expect(found).toMatchObject({ place: folder, synchronous: 2, fault: null })
    expect(found.commitMs).toBeGreaterThan(0)
    expect(findDurableWrites(join(folder, 'not', 'yet', 'made')).fault).toBeNull()
  })

  test.each<[string, Partial<DurableWritesFound>, Check['verdict'], RegExp]>([
    ['a local disk', {}, 'ok', /FULL/],
    ['NORMAL', { synchronous: 1 }, 'missing', /synchronous 1, not FULL/],
    ['a file that cannot be written', { synchronous: null, fault: 'EROFS' }, 'missing', /EROFS/],
    ['NFS', { fileSystemType: 0x6969 }, 'missing', /NFS/],
    ['memory', { fileSystemType: 0x0102_1994 }, 'weaker', /outlives/],
    ['a full disk', { freeBytes: 100_000 }, 'missing', /0 MiB free/],
    ['a nearly full disk', { freeBytes: 100 * 2 ** 20 }, 'weaker', /100 MiB free/],
  ])('%s', (_name, found, verdict, text) => {
    expectLine(judgeDurableWrites({ ...good, ...found }), verdict, text, verdict === 'ok' ? null : /./)
  })
})

describe('environment', () => {
  test('hostile variables are named, never shown, and only weaken', () => {
    const environment = { LD_PRELOAD: 'needle-in-value', HTTPS_PROXY: 'http://x', HOME: '/nonexistent' }
    const check = judgeEnvironment(environment)
    expectLine(check, 'weaker', /HTTPS_PROXY, LD_PRELOAD/, /^unset HTTPS_PROXY LD_PRELOAD$/)
    expect(JSON.stringify(check)).not.toContain('needle')
    expect(judgeEnvironment({ HOME: '/nonexistent' }).verdict).toBe('ok')
  })
})
