// What the doctor says of the HTTP routes of caller delivery: of their token's real file and their socket's real place.
import { chmodSync, linkSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { KernelConfig } from '../../kernel/config.js'
import { signingKey } from '../../protocol/keys.js'
import { findCallerRoutes, judgeCallerRoutes } from '../../selftest/doctor/caller-routes.js'
import type { Check } from '../../selftest/doctor/check.js'
import { findInstallation, type Installation } from '../../selftest/doctor/installation.js'
import type { Layout } from '../../system/layout.js'
import { expectLine, ownInstallation } from '../support/doctored-installation.js'
import { seed } from '../support/kernel.js'
import { temporaryFolder } from '../support/temporary-folder.js'

type CallerDelivery = NonNullable<KernelConfig['callerDelivery']>

let folder: string
let layout: Layout
let installation: Installation

beforeAll(() => {
  folder = temporaryFolder('chio-doctor-routes-')
  layout = ownInstallation(join(folder, 'state'))
  const found = findInstallation(layout)
  expect(found.kind).toBe('made')
  if (found.kind === 'made') installation = found.installation
})

describe('caller routes', () => {
  const token = (): string => join(folder, 'control.token')
  const executor = { executorId: 'executor-1', keyEpoch: 1, publicKey: signingKey(seed()).publicKey }
  const judge = (listen: CallerDelivery['listen'], controlTokenFile: string | null = token()): Check => {
    const document = { callerDelivery: { controlTokenFile, executor, listen } }
    return judgeCallerRoutes(findCallerRoutes({ document, kind: 'read' }, installation.identities))
  }
  const loopback = { host: '127.0.0.1', port: 9_000 } as const
  const socket = () => ({ path: join(dirname(layout.kernel.hostSocket), 'caller') })
  beforeEach(() => {
    rmSync(token(), { force: true })
    writeFileSync(token(), 'a-token\n', { mode: 0o600 })
  })

  test('that nobody configured, or that we may not see, are no fault', () => {
    const none = { document: { callerDelivery: null }, kind: 'read' } as const
    expectLine(judgeCallerRoutes(findCallerRoutes(none, installation.identities)), 'ok', /to nobody/, null)
    expectLine(judgeCallerRoutes({ kind: 'hidden' }), 'ok', /not ours to see/, null)
    expectLine(judge(null), 'ok', /executor-1 are on the kernel's own socket/, null)
  })

  test('behind a token of the kernel are ok, on a port and on a socket', () => {
    expectLine(judge(loopback), 'ok', /127\.0\.0\.1:9000, for executor executor-1/, null)
    expectLine(judge(socket()), 'ok', /caller, for executor executor-1/, null)
  })

  test('without a token are weaker: nobody gets past the gate', () => {
    expectLine(judge(loopback, null), 'weaker', /nobody may start or report/, /controlTokenFile/)
  })

  test.each([
    ['gone', () => rmSync(token()), /is missing/, /write a new token/],
    ['readable by others', () => chmodSync(token(), 0o640), /mode 0640, not 0600/, /chmod 0600/],
    ['empty', () => writeFileSync(token(), ''), /0 bytes, not 1 to 514/, /write a new token/],
    ['too long', () => writeFileSync(token(), 'x'.repeat(515)), /515 bytes/, /write a new token/],
    ['a link of two names', () => linkSync(token(), `${token()}.2`), /has 2 links/, /find/],
  ])('with a token file that is %s are missing', (_what, change, found, remedy) => {
    change()
    expectLine(judge(loopback), 'missing', found, remedy)
  })

  test('on a socket in a folder of everybody are missing', () => {
    const open = join(folder, 'open')
    mkdirSync(open)
    chmodSync(open, 0o777)
    expectLine(judge({ path: join(open, 'caller') }), 'missing', /mode 0700, got mode 0777/, /listen\.path/)
  })
})
