// A copy of an installation is refused wherever it would speak for the original, and the original never is.
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { readPins } from '../../cli/host-session.js'
import { readConfig } from '../../daemon/config.js'
import { readKernelConfig } from '../../kernel/config.js'
import { isBrokerError } from '../../protocol/errors.js'
import { findConfiguration, judgeConfiguration } from '../../selftest/doctor/configuration.js'
import { findInstallation } from '../../selftest/doctor/installation.js'
import { makeInstallation } from '../../system/installation.js'
import { type Layout, layoutOf, layoutOfState, stateOfSocket } from '../../system/layout.js'
import { chio } from '../support/chio.js'

let folder: string
let original: Layout
let copy: Layout

beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'chio-own-')))
  original = layoutOf(join(folder, 'state'))
  copy = layoutOf(join(folder, 'copy'))
  const self = { uid: process.geteuid?.() ?? 0, gid: process.getegid?.() ?? 0 }
  makeInstallation({
    layout: original,
    identities: { broker: self, kernel: self, cage: null },
    administrator: self,
    clients: [{ ...self, gids: [self.gid] }],
    tenantScope: 'own',
    localProviders: [],
  })
  writeFileSync(join(original.broker.directory, 'broker.db'), '')
  writeFileSync(join(original.kernel.directory, 'kernel.db'), '')
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

function refusalOf(act: () => unknown): string {
  try {
    act()
    return 'accepted'
  } catch (error) {
    return isBrokerError(error) ? `${error.code}: ${error.message}` : String(error)
  }
}

/** Each of its readers, by name. */
function readersOf(layout: Layout): Record<string, () => unknown> {
  return {
    broker: () => readConfig(layout.broker.config),
    kernel: () => readKernelConfig(layout.kernel.config),
    pins: () => readPins(layout),
  }
}

describe('an installation', () => {
  test('is read where it was made, a configuration also through a link', () => {
    symlinkSync(original.state, join(folder, 'link'))
    const linked = readersOf(layoutOf(join(folder, 'link')))
    const reads = [...Object.values(readersOf(original)), linked['broker'], linked['kernel']]
    for (const read of reads) expect(refusalOf(read as () => unknown)).toBe('accepted')
  })

  test.each(['copied', 'moved'])('that was %s is refused by every reader, which names the original', how => {
    if (how === 'copied') cpSync(original.state, copy.state, { recursive: true })
    else renameSync(original.state, copy.state)
    for (const read of Object.values(readersOf(copy))) {
      expect(refusalOf(read)).toMatch(/^state_elsewhere: .* refused: expected .*, got .*name it with --state/)
      expect(refusalOf(read)).toContain(`--state ${original.state},`)
    }
  })

  test('whose copy had its store alone set right is still refused for its sockets', () => {
    cpSync(original.state, copy.state, { recursive: true })
    const config = readConfig(original.broker.config)
    writeFileSync(copy.broker.config, JSON.stringify({ ...config, stateDirectory: copy.broker.directory }))
    expect(refusalOf(readersOf(copy)['broker'] ?? (() => undefined))).toContain(
      `expected sockets of ${copy.state}, got those of ${original.state}`,
    )
  })

  test('may keep a configuration apart from any store', () => {
    const apart = join(folder, 'etc')
    mkdirSync(apart)
    cpSync(original.broker.config, join(apart, 'config.json'))
    expect(refusalOf(() => readConfig(join(apart, 'config.json')))).toBe('accepted')
  })

  test('that was copied is missing for the doctor, with what to do', () => {
    cpSync(original.state, copy.state, { recursive: true })
    const found = findInstallation(copy)
    if (found.kind !== 'made') throw new Error(found.kind)
    const check = judgeConfiguration(findConfiguration(found.installation))
    expect(check).toMatchObject({ verdict: 'missing', remedy: expect.stringContaining('--state') as string })
  })

  test('that was copied is refused by the commands, daemons included', async () => {
    cpSync(original.state, copy.state, { recursive: true })
    const told = await Promise.all([
      chio(['status', '--state', copy.state, '--json']),
      chio(['up', '--state', copy.state, '--json']),
      chio(['--config', copy.broker.config, '--provision', '--master-key-fd', '9', '--receipt-key-fd', '9'], {
        program: 'chio-brokerd',
      }),
    ])
    for (const { status, stderr } of told) {
      expect(status).toBe(1)
      expect(stderr).toContain('"code":"state_elsewhere"')
    }
  })
})

test.each<[string, string | null]>([
  ['/run/chio/broker/sock', '/var/lib/chio'],
  ['/run/chio-tenants/acme/kernel/sock', '/var/lib/chio-tenants/acme'],
  ['/srv/alice/run/authority/sock', '/srv/alice'],
  ['/srv/sockets/broker', null],
])('the socket %s is one of %s', (socket, state) => {
  expect(stateOfSocket(socket)).toBe(state)
  if (state === null) return
  const { broker, kernel } = layoutOfState(state)
  expect([broker.socket, kernel.hostSocket, kernel.authoritySocket]).toContain(socket)
})
