// A provider of one's own as docs/local-provider.md makes it, and what is said of a URL that leads nowhere when its
// grant is issued.
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { judgeDestination } from '../../cli/issue-destination.js'
import { parseLocalProviders } from '../../cli/local-provider.js'
import { LocalProviders } from '../../daemon/provider/local-providers.js'
import { ProviderConnection } from '../../daemon/provider/connection.js'
import { PublicResolver } from '../../daemon/provider/resolve.js'
import { routeTo } from '../../daemon/provider/route.js'
import { systemClock } from '../../native/clock.js'
import { packageRoot } from '../../native/paths.js'
import { destinationFromUrl } from '../../protocol/destination.js'
import { makeInstallation } from '../../system/installation.js'
import { layoutOf } from '../../system/layout.js'
import { parsePage } from '../support/documents/markdown.js'
import { startProvider } from '../support/provider.js'
import { deadlineIn } from '../support/descriptors.js'

const PAGE = 'docs/local-provider.md'
const page = parsePage(PAGE, readFileSync(join(packageRoot(), PAGE), 'utf8'))
const blockOf = (marker: string): string => page.fences.find(fence => fence.marker === marker)?.text ?? ''

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'chio-local-'))
  execFileSync('/bin/sh', ['-eu', '-c', blockOf('run: authority')], { cwd: folder, stdio: 'pipe' })
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const read = (name: string): string => readFileSync(join(folder, name), 'utf8')

describe('docs/local-provider.md', () => {
  test('makes an authority and a certificate with which the broker speaks to the provider', async () => {
    const tls = { cert: read('provider.pem'), key: read('provider.key') }
    const provider = await startProvider({ host: 'issues.example.com', tls })
    const entries = parseLocalProviders([`issues.example.com:${provider.port}:${join(folder, 'ca.pem')}`])
    const route = routeTo(destinationFromUrl(provider.url('/issues'), 'POST'), new LocalProviders(entries))
    const resolver = new PublicResolver(() => Promise.reject(new Error('nothing is looked up')))
    const terms = { route, resolver, clock: systemClock, deadlineBootNs: deadlineIn(10_000) }
    const connection = new ProviderConnection(terms)
    await connection.ready
    expect(connection.isAlive()).toBe(true)
    connection.drop()
    await provider.close()
  })

  test('shows an entry that the broker takes', () => {
    const entry = JSON.parse(blockOf('entry')) as { host: string; port: number; address: string }
    const providers = new LocalProviders([{ ...entry, caPem: read('ca.pem') }])
    expect(providers.find('issues.example.com', 8443)).toMatchObject({ address: '127.0.0.1' })
  })
})

describe('a grant is issued for', () => {
  const layout = () => layoutOf(join(folder, 'state'))
  beforeAll(() => {
    const self = { uid: process.geteuid?.() ?? 0, gid: process.getegid?.() ?? 0 }
    makeInstallation({
      layout: layout(),
      identities: { broker: self, kernel: self, cage: null },
      administrator: self,
      clients: [{ ...self, gids: [self.gid] }],
      tenantScope: 'local',
      localProviders: [{ host: '127.0.0.1', port: 8443, address: '127.0.0.1', caPem: read('ca.pem') }],
    })
  })
  const judged = (url: string, answer: readonly string[] | string = ['1.1.1.1'], at = layout()) =>
    judgeDestination(at, destinationFromUrl(url, 'GET'), () =>
      typeof answer === 'string'
        ? Promise.reject(Object.assign(new Error(answer), { code: answer }))
        : Promise.resolve(answer),
    )

  test.each(['https://public.example/', 'https://127.0.0.1:8443/'])('%s without a word', async url => {
    expect(await judged(url)).toBeNull()
  })

  test.each([
    'https://127.0.0.1/',
    'https://127.0.0.1:8444/',
    'https://[::1]:8443/',
    'https://10.0.0.1/',
    'https://localhost:8443/',
    'https://api.localhost/',
  ])('%s not at all: it can never be reached', async url => {
    await expect(judged(url)).rejects.toThrow(
      /^--url refused: expected a public DNS name, or host and port of .*, got /,
    )
  })

  test.each<[readonly string[] | string, RegExp]>([
    [
      'ENOTFOUND',
      /expected addresses of nowhere\.example from the name servers, got ENOTFOUND; runs fail until/,
    ],
    [
      ['10.0.0.7'],
      /expected public addresses of nowhere\.example, got one that is private; runs are refused/,
    ],
  ])('a name that is answered with %j, with a warning', async (answer, warning) => {
    expect(await judged('https://nowhere.example/', answer)).toMatch(warning)
  })

  test('an address with a warning alone, where the configuration is not ours to see', async () => {
    expect(await judged('https://127.0.0.1/', [], layoutOf(join(folder, 'absent')))).toMatch(
      /is reached only as/,
    )
  })
})
