// chio doctor as an operator runs it: as root, as a user without root, in a namespace that allows no cage, and as a
// user whom an installation with users apart does not know or does not let through.
import { chmodSync, mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Check } from '../../selftest/doctor/check.js'
import { freeIds } from '../../selftest/free-ids.js'
import { reachableProgram } from '../../selftest/program-copy.js'
import { makeInstallation } from '../../system/installation.js'
import { layoutOf } from '../../system/layout.js'
import { chio, documentOf, type Ended } from '../support/chio.js'
import { runWhereForbidden } from '../support/forbidding-namespace.js'
import { SKIP_REASONS } from '../support/skips.js'

const isRoot = process.geteuid?.() === 0
const folder = realpathSync(mkdtempSync(join(tmpdir(), 'chio-doctor-test-')))
const [user = 0, stranger = 0, broker = 0, kernel = 0, cage = 0] = isRoot ? freeIds(5) : []
let root: string

beforeAll(() => {
  chmodSync(folder, 0o755)
  root = reachableProgram(folder).root
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** Another user only where root can choose one; otherwise ourselves. */
const asUser = (uid: number) => (isRoot ? { uid, root } : {})

function checksOf(ended: Ended): Check[] {
  const document = documentOf(ended.stdout)
  expect(Object.keys(document)).toEqual(['schema', 'checks'])
  expect(document.schema).toBe('chio.doctor.v1')
  const checks = document['checks'] as Check[]
  for (const check of checks) expect(Object.keys(check)).toEqual(['name', 'verdict', 'found', 'remedy'])
  return checks
}

function lineOf(ended: Ended, name: string): Check {
  const check = checksOf(ended).find(one => one.name === name)
  if (check === undefined) throw new RangeError(`no line ${name}`)
  return check
}

describe('chio doctor on this machine, without an installation', () => {
  const args = ['doctor', '--json', '--state', join(folder, 'none')]

  test.each([
    ['as whoever runs the tests', () => ({})],
    ['as a user without root', () => asUser(user)],
  ])('%s, launches a real cage and exits 0', async (_name, options) => {
    const ended = await chio(args, options())
    expect(ended).toMatchObject({ status: 0, stderr: '' })
    const checks = checksOf(ended)
    expect(checks.filter(({ verdict }) => verdict === 'missing')).toEqual([])
    expect(checks.at(-1)).toMatchObject({ name: 'cage', verdict: 'ok' })
  })

  test('warns of the environment of the shell, and exits 0 all the same', async () => {
    const ended = await chio(args, { environment: { SSL_CERT_FILE: '/nonexistent' } })
    expect(ended.status).toBe(0)
    expect(lineOf(ended, 'environment')).toMatchObject({ verdict: 'weaker', remedy: 'unset SSL_CERT_FILE' })
  })

  test('prints lines of 80 columns, each with its verdict, and a summary', async () => {
    const { stdout } = await chio(['doctor', '--state', join(folder, 'none')])
    const lines = stdout.trimEnd().split('\n')
    expect(lines.filter(line => line.length > 80)).toEqual([])
    expect(
      lines.filter(line => !/^(ok|weaker|missing| {9}\S|The main job can run here: )/.test(line)),
    ).toEqual([])
    expect(lines.at(-1)).toMatch(/^The main job can run here: \d+ ok, \d+ weaker\.$/)
  })
})

describe('chio doctor where no user namespaces are allowed', () => {
  test('exits 1, names the limit and what to do, and has tried the cage for real', async () => {
    const program = [process.execPath, join(root, 'dist', 'bin', 'chio.js'), 'doctor', '--json']
    const ended = await runWhereForbidden([...program, '--state', join(folder, 'none')], user)
    expect(ended).toMatchObject({ status: 1, stderr: '' })
    const remedy = expect.stringContaining('sysctl user.max_user_namespaces=15000') as string
    expect(lineOf(ended, 'user-namespaces')).toMatchObject({
      verdict: 'missing',
      found: 'user.max_user_namespaces is 0',
      remedy,
    })
    const cage = lineOf(ended, 'cage')
    expect(cage.verdict).toBe('missing')
    if (!isRoot) return
    expect(cage).toMatchObject({
      found: expect.stringContaining('Creating new namespace failed') as string,
      remedy,
    })
    expect(lineOf(ended, 'bubblewrap').verdict).toBe('ok')
  })
})

describe(`an installation with users apart (${SKIP_REASONS.needsRoot})`, () => {
  const state = join(folder, 'state')

  beforeAll(() => {
    if (!isRoot) return
    const id = (uid: number) => ({ uid, gid: uid })
    makeInstallation({
      layout: layoutOf(state),
      identities: { broker: id(broker), kernel: id(kernel), cage: id(cage) },
      administrator: id(0),
      clients: [{ ...id(user), gids: [user, broker, kernel] }],
      tenantScope: 'doctor',
      localProviders: [],
    })
  })

  test.skipIf(!isRoot)('is ok for root, who sees every key', async () => {
    const ended = await chio(['doctor', '--json', '--state', state])
    expect(ended.status).toBe(0)
    expect(lineOf(ended, 'users')).toMatchObject({ verdict: 'ok' })
    expect(lineOf(ended, 'keys').found).toMatch(/^9 key files/)
    expect(lineOf(ended, 'configuration').found).toMatch(/^4 files/)
    expect(lineOf(ended, 'cage').found).toContain(`uid ${cage}`)
  })

  test.skipIf(!isRoot)(
    'tells its client which groups this session lacks, and what it cannot see',
    async () => {
      const ended = await chio(['doctor', '--json', '--state', state], { uid: user, root })
      expect(ended.status).toBe(1)
      const groups = lineOf(ended, 'groups')
      expect(groups).toMatchObject({ verdict: 'missing', found: `not in group ${broker}, ${kernel}` })
      expect(lineOf(ended, 'keys').found).toMatch(/^2 key files.*7 are not ours to see/)
      expect(lineOf(ended, 'configuration').found).toMatch(/^2 files.*2 are not ours to see/)
    },
  )

  test.skipIf(!isRoot)('tells a stranger in one sentence, doctor and run alike', async () => {
    const ended = await chio(['doctor', '--json', '--state', state], { uid: stranger, root })
    const sentence = `uid ${stranger} is no client of this installation`
    expect(lineOf(ended, 'groups')).toMatchObject({ verdict: 'missing', found: sentence })
    const run = await chio(['run', '--capability', 'x', '--state', state], { uid: stranger, root })
    expect(run.status).toBe(1)
    expect(run.stderr).toContain(`${sentence}: chio init --client USER`)
    expect(run.stderr).toContain('code authorization_denied')
  })
})

describe(`an installation of another single user (${SKIP_REASONS.needsRoot})`, () => {
  test.skipIf(!isRoot)('is told apart from none at all', async () => {
    const state = join(folder, 'single')
    const id = { uid: user, gid: user }
    makeInstallation({
      layout: layoutOf(state),
      identities: { broker: id, kernel: id, cage: null },
      administrator: id,
      clients: [{ ...id, gids: [user] }],
      tenantScope: 'doctor',
      localProviders: [],
    })
    const run = await chio(['run', '--capability', 'x', '--state', state], { uid: stranger, root })
    expect(run.stderr).toContain(`uid ${stranger} is no client of this installation: chio init --client USER`)
    const ended = await chio(['doctor', '--json', '--state', state], { uid: stranger, root })
    expect(ended.status).toBe(1)
    expect(lineOf(ended, 'installation').found).toContain('belongs to another user')
  })
})
