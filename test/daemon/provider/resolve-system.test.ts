// The real resolver of this machine against a real name server: a child with an /etc/resolv.conf of its own.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startChild } from '../../support/compiled-child.js'
import { NameServer } from '../../support/name-server.js'
import { SKIP_REASONS } from '../../support/skips.js'

const isRoot = process.getuid?.() === 0
// Addresses written out, so that the little server need not expand them.
const PUBLIC_IPV6 = '2606:4700:4700:0000:0000:0000:0000:1111'
const MAPPED_METADATA = '0000:0000:0000:0000:0000:ffff:a9fe:a9fe'
const METADATA_IPV6 = 'fd00:0ec2:0000:0000:0000:0000:0000:0254'
const server = new NameServer({
  'public.test': [['1.1.1.1', PUBLIC_IPV6]],
  'metadata.test': [['169.254.169.254']],
  'metadata6.test': [[METADATA_IPV6]],
  'mapped.test': [[MAPPED_METADATA]],
  'mixed.test': [['1.1.1.1', '10.0.0.1']],
  'mixed6.test': [['1.1.1.1', METADATA_IPV6]],
  'alternating.test': [['1.1.1.1'], ['169.254.169.254']],
  'alias.test': [['cname:public.test', '1.1.1.1']],
  'alias-to-metadata.test': [['cname:metadata.test', '169.254.169.254']],
  'silent.test': [],
})
const folder = mkdtempSync(join(tmpdir(), 'chio-resolver-'))

beforeAll(async () => {
  if (!isRoot) return
  writeFileSync(join(folder, 'resolv.conf'), `nameserver ${server.address}\noptions timeout:1 attempts:1\n`)
  await server.listen()
})
afterAll(() => {
  if (isRoot) server.close()
  rmSync(folder, { recursive: true, force: true })
})

const SCRIPT = `
const { PublicResolver } = await compiled('daemon/provider/resolve')
const { OpeningBudget } = await compiled('daemon/provider/budget')
const clock = { unixMs: () => Date.now(), bootNs: () => process.hrtime.bigint() }
const resolver = new PublicResolver()
for (const host of args) {
  const started = Date.now()
  const budget = new OpeningBudget(clock, clock.bootNs() + 700_000_000n)
  const verdict = await resolver.resolve(host, budget.signal).then(found => found.sort().join(' '), error => error.code)
  budget.end()
  say([host, verdict, Date.now() - started < 1500])
}
process.exit(0)
`

async function resolveAll(...hosts: string[]): Promise<unknown[]> {
  const mount = `mount --bind ${join(folder, 'resolv.conf')} /etc/resolv.conf && exec "$@"`
  const child = startChild(SCRIPT, hosts, { wrapper: ['unshare', '--mount', 'sh', '-c', mount, 'sh'] })
  const { lines } = await child.ended()
  return lines
}

describe.skipIf(!isRoot)(`resolution by this machine (${SKIP_REASONS.needsRoot})`, () => {
  it('gives what is public, and refuses every answer that holds anything else', async () => {
    expect(
      await resolveAll(
        'public.test',
        'metadata.test',
        'metadata6.test',
        'mapped.test',
        'mixed.test',
        'mixed6.test',
      ),
    ).toEqual([
      ['public.test', '1.1.1.1 2606:4700:4700::1111', true],
      ['metadata.test', 'authorization_denied', true],
      ['metadata6.test', 'authorization_denied', true],
      ['mapped.test', 'authorization_denied', true],
      ['mixed.test', 'authorization_denied', true],
      ['mixed6.test', 'authorization_denied', true],
    ])
  })

  it('follows an alias and judges where it ends', async () => {
    expect(await resolveAll('alias.test', 'alias-to-metadata.test')).toEqual([
      ['alias.test', '1.1.1.1', true],
      ['alias-to-metadata.test', 'authorization_denied', true],
    ])
  })

  it('sees the second answer of a name that rebinds', async () => {
    expect(await resolveAll('alternating.test', 'alternating.test')).toEqual([
      ['alternating.test', '1.1.1.1', true],
      ['alternating.test', 'authorization_denied', true],
    ])
  })

  it('is not waited for when the name server is silent', async () => {
    expect(await resolveAll('silent.test')).toEqual([['silent.test', 'upstream', true]])
  })

  it('refuses every spelling of loopback that the C library takes', async () => {
    const spellings = [
      '127.0.0.1',
      '127.1',
      '2130706433',
      '0x7f000001',
      '0177.0.0.1',
      '::1',
      '::ffff:127.0.0.1',
    ]
    expect(await resolveAll(...spellings)).toEqual(
      spellings.map(host => [host, 'authorization_denied', true]),
    )
  })
})
