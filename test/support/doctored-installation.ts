// Owns an installation of this user alone for the doctor to look at, and what a line of the doctor is held to.
import { expect } from 'vitest'
import type { Check } from '../../selftest/doctor/check.js'
import { makeInstallation } from '../../system/installation.js'
import { type Layout, layoutOf } from '../../system/layout.js'

export function ownInstallation(state: string): Layout {
  const self = { uid: process.geteuid?.() ?? 0, gid: process.getegid?.() ?? 0 }
  const made = layoutOf(state)
  makeInstallation({
    layout: made,
    identities: { broker: self, kernel: self, cage: null },
    administrator: self,
    clients: [{ ...self, gids: [self.gid] }],
    tenantScope: 'doctor',
    localProviders: [],
  })
  return made
}

export function expectLine(
  check: Check,
  verdict: Check['verdict'],
  found: RegExp,
  remedy: RegExp | null,
): void {
  expect([check.name, check.verdict]).toEqual([check.name, verdict])
  expect(check.found).toMatch(found)
  if (remedy === null) expect(check.remedy).toBeNull()
  else expect(check.remedy).toMatch(remedy)
}
