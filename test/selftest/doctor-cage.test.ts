// The decisive line of the doctor: a real cage, and what is said when there is none, in the words of whoever refused.
import { chmodSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { APPARMOR_REMEDY } from '../../selftest/doctor/apparmor-profile.js'
import { type CageFound, findCage, judgeCage } from '../../selftest/doctor/cage.js'
import type { Check } from '../../selftest/doctor/check.js'
import type { UserNamespacesFound } from '../../selftest/doctor/user-namespaces.js'
import { SKIP_REASONS } from '../support/skips.js'

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

describe('the cage', () => {
  const free: UserNamespacesFound = { maximum: 96_000, unprivilegedClone: null, apparmorRestricts: null }
  const refused = (refusal: string): CageFound => ({ refusal, tookMs: 1, uid: 1_000 })

  test('of this machine is launched, armed and run to its end', async () => {
    const found = await findCage({ identities: null })
    expect(found.refusal).toBeNull()
    if (isRoot) expect(found.uid).toBeGreaterThan(0)
    expectLine(judgeCage(found, free), 'ok', /run to its end as uid \d+ in \d+ ms/, null)
  })

  test('a bwrap that meets the restriction is told in its own words, with the profile', async context => {
    if (!isRoot) context.skip(SKIP_REASONS.needsRoot)
    const path = join(folder, 'bwrap-restricted')
    writeFileSync(path, '#!/bin/sh\necho "bwrap: setting up uid map: Permission denied" >&2\nexit 1\n')
    chmodSync(path, 0o755)
    chmodSync(folder, 0o755)
    const found = await findCage({ identities: null, bubblewrapPath: path })
    expect(found.refusal).toContain('setting up uid map: Permission denied')
    const check = judgeCage(found, { ...free, apparmorRestricts: 1 })
    expect(check.verdict).toBe('missing')
    expect(check.remedy).toBe(APPARMOR_REMEDY)
    expectLine(judgeCage(found, free), 'missing', /uid map/, /filter of a container/)
  })

  test('a bwrap that cannot be run is missing', async () => {
    const path = join(folder, 'bwrap-elsewhere')
    symlinkSync(join(folder, 'nowhere'), path)
    const { refusal } = await findCage({ identities: null, bubblewrapPath: path })
    expectLine(
      judgeCage(refused(refusal ?? ''), free),
      'missing',
      /ENOENT|bwrap owner/,
      /line of bubblewrap|named layer/,
    )
  })

  test.each([
    ['loopback: Failed RTM_NEWADDR: Operation not permitted', 1, /apparmor_parser/],
    ["Can't mount proc on /newroot/proc: Operation not permitted", null, /masks \/proc/],
    ['Creating new namespace failed: No space left on device', null, /sysctl user\.max_user_namespaces/],
    ['No permissions to create new namespace', null, /container/],
    ['bwrap owner: expected root for /usr/bin/bwrap, got uid 7', null, /line of bubblewrap/],
    ['census of seccomp mode: expected 2, got 0', null, /named layer/],
  ])('%s', (words, apparmorRestricts, remedy) => {
    expectLine(judgeCage(refused(words), { ...free, apparmorRestricts }), 'missing', /./, remedy)
  })
})
