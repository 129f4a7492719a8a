// Holds the unit files against systemd's own judges, against the layout that they serve, and against each other.
import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { KERNEL_CLOSES_WITHIN_MS } from '../../kernel/serving/kernel-end.js'
import { DEFAULT_IPC_DEADLINE_MS } from '../../protocol/limits.js'
import { layoutOf } from '../../system/layout.js'
import { chio } from '../support/chio.js'
import { SKIP_REASONS } from '../support/skips.js'
import { directivesOf, SYSTEMD, UNIT_NAMES, unitText, valuesOf } from '../support/unit-file.js'
import { testWhen } from '../support/when.js'

const services = UNIT_NAMES.filter(name => name.endsWith('.service'))
const GREATEST_EXPOSURE = 1.5
const installed = layoutOf('/var/lib/chio', '/run/chio')

function analyze(...args: string[]) {
  const { status, stderr, stdout } = spawnSync('systemd-analyze', args, { encoding: 'utf8' })
  return { status, said: `${stdout}${stderr}` }
}

let staging = ''
beforeAll(() => {
  staging = mkdtempSync(join(tmpdir(), 'chio-units-'))
})
afterAll(() => rmSync(staging, { recursive: true, force: true }))

/** The units as they are, but for a Node that is somewhere else on this machine: verify looks for what is started. */
function verifiable(change: (text: string) => string = text => text): string[] {
  const folder = mkdtempSync(join(staging, 'verify-'))
  return UNIT_NAMES.map(name => {
    const path = join(folder, name)
    writeFileSync(path, change(unitText(name).replace('=/usr/bin/node ', `=${process.execPath} `)))
    return path
  })
}

describe('systemd', () => {
  test('has nothing to say of the units', () => {
    expect(analyze('verify', ...verifiable())).toEqual({ status: 0, said: '' })
  })

  test('would say of a key that it does not know, although it returns 0', () => {
    const units = verifiable(text => text.replace('WatchdogSec=', 'WatchdogSecs='))
    const { status, said } = analyze('verify', ...units)
    expect(status).toBe(0)
    expect(said).toMatch(/Unknown key.*WatchdogSecs/)
  })

  test.each(services)(`counts the exposure of %s at ${GREATEST_EXPOSURE} or less`, name => {
    const threshold = `--threshold=${GREATEST_EXPOSURE * 10}`
    const { status, said } = analyze('security', '--offline=true', threshold, join(SYSTEMD, name))
    expect(Number(/Overall exposure level for .*: ([\d.]+)/.exec(said)?.[1])).toBeLessThanOrEqual(
      GREATEST_EXPOSURE,
    )
    expect(status).toBe(0)
  })
})

describe('a service', () => {
  test.each(services)('%s gives a reason for every line', name => {
    const bare = directivesOf(unitText(name)).filter(
      ({ section, comment }) => section === 'Service' && comment === '',
    )
    expect(bare.map(directive => directive.name)).toEqual([])
  })

  test.each(services)('%s leaves peers apart and the machine code of V8 alone', name => {
    const names = directivesOf(unitText(name)).map(directive => directive.name)
    for (const absent of ['PrivateUsers', 'MemoryDenyWriteExecute', 'ProcSubset']) {
      expect(names).not.toContain(absent)
      expect(unitText(name)).toMatch(new RegExp(`^# ${absent}=`, 'm'))
    }
  })

  test.each(['chio-brokerd', 'chio-kerneld'])('%s@ is the same for one tenant', name => {
    const template = directivesOf(unitText(`${name}@.service`)).map(
      ({ name: key, value }) => `${key}=${value}`,
    )
    const plain = directivesOf(unitText(`${name}.service`)).map(({ name: key, value }) => `${key}=${value}`)
    const withoutTenant = template.map(line =>
      line.replaceAll('chio-tenants/%i', 'chio').replaceAll('@%i', '').replace(' (tenant %i)', ''),
    )
    expect(withoutTenant).toEqual(plain)
  })

  test.each([
    [
      'chio-brokerd',
      installed.broker.config,
      { master: installed.broker.masterKey, receipt: installed.broker.receiptKey },
    ],
    ['chio-kerneld', installed.kernel.config, installed.kernel.keys],
  ])('%s starts on the configuration and the keys of an installation', (name, config, keys) => {
    const text = unitText(`${name}.service`)
    const names = Object.keys(keys)
    const options = names.map(key => `--${key}-key-credential ${key}-key`)
    const [start = ''] = valuesOf(text, 'ExecStart')
    expect(start.split(' ').slice(0, 4)).toEqual([
      '/usr/bin/node',
      `/usr/lib/chio/dist/bin/${name}.js`,
      '--config',
      config,
    ])
    for (const option of options) expect(start).toContain(option)
    const credentials = Object.entries(keys).map(([key, path]) => `${key}-key:${path}`)
    expect(valuesOf(text, 'LoadCredential').sort()).toEqual(credentials.sort())
  })

  test.each([
    // Ceiling of the provider's time in a new installation, one second to record, the answer.
    ['chio-brokerd.service', 30_000 + 1_000 + DEFAULT_IPC_DEADLINE_MS],
    ['chio-kerneld.service', KERNEL_CLOSES_WITHIN_MS],
  ])('%s may stop for longer than its drain', (name, drainMs) => {
    expect(Number(valuesOf(unitText(name), 'TimeoutStopSec')[0]) * 1_000).toBeGreaterThan(drainMs)
  })
})

describe('the socket units', () => {
  test.each([
    ['chio-brokerd.socket', [installed.broker.socket]],
    ['chio-kerneld.socket', [installed.kernel.hostSocket, installed.kernel.authoritySocket]],
  ])('%s binds the sockets of an installation, as their custody demands', (name, paths) => {
    const text = unitText(name)
    const user = name.startsWith('chio-brokerd') ? 'chio-broker' : 'chio-kernel'
    expect(valuesOf(text, 'ListenStream')).toEqual(paths)
    expect(['SocketUser', 'SocketGroup', 'SocketMode'].flatMap(key => valuesOf(text, key))).toEqual([
      user,
      user,
      '0660',
    ])
    const runtime = valuesOf(unitText(name.replace('.socket', '.service')), 'RuntimeDirectory')
    expect(
      runtime
        .join(' ')
        .split(' ')
        .map(path => `/run/${path}/sock`),
    ).toEqual(paths)
  })

  test('have no template: what a tenant is served at is made by its service', () => {
    const { broker, kernel } = layoutOf('/var/lib/chio-tenants/acme', '/run/chio-tenants/acme')
    const runtime = ['chio-brokerd@.service', 'chio-kerneld@.service']
      .flatMap(name => valuesOf(unitText(name), 'RuntimeDirectory'))
      .flatMap(value => value.replaceAll('%i', 'acme').split(' '))
    const paths = [broker.socket, kernel.hostSocket, kernel.authoritySocket]
    expect(runtime.map(path => `/run/${path}/sock`)).toEqual(paths)
    const config = valuesOf(unitText('chio-brokerd@.service'), 'ExecStart')[0]?.replaceAll('%i', 'acme')
    expect(config).toContain(` --config ${broker.config} `)
  })

  testWhen(
    process.getuid?.() === 0,
    SKIP_REASONS.needsRoot,
    'stand in directories that tmpfiles makes for users that sysusers makes',
    () => {
      const root = mkdtempSync(join(staging, 'root-'))
      mkdirSync(join(root, 'etc'))
      expect(spawnSync('systemd-sysusers', [`--root=${root}`, join(SYSTEMD, 'chio.sysusers')]).status).toBe(0)
      expect(
        spawnSync('systemd-tmpfiles', [`--root=${root}`, '--create', join(SYSTEMD, 'chio.tmpfiles')]).status,
      ).toBe(0)
      const users = readFileSync(join(root, 'etc/passwd'), 'utf8')
      const groups = readFileSync(join(root, 'etc/group'), 'utf8')
      expect(groups).toMatch(/^chio-broker:x:\d+:chio-kernel$/m)
      expect(groups).toMatch(/^chio-kernel:x:\d+:chio-broker$/m)
      for (const [folder, user] of [
        ['broker', 'chio-broker'],
        ['kernel', 'chio-kernel'],
        ['authority', 'chio-kernel'],
      ] as const) {
        const { mode, uid, gid } = statSync(join(root, 'run/chio', folder))
        const [, id] = new RegExp(`^${user}:x:(\\d+):`, 'm').exec(users) ?? []
        const [, group] = new RegExp(`^${user}:x:(\\d+):`, 'm').exec(groups) ?? []
        expect({ mode: mode & 0o7777, uid, gid }).toEqual({
          mode: 0o710,
          uid: Number(id),
          gid: Number(group),
        })
      }
      expect(users).toMatch(/^chio-cage:x:\d+:\d+:[^:]*:\/nonexistent:\/usr\/sbin\/nologin$/m)
    },
  )
})

describe('chio service install', { timeout: 120_000 }, () => {
  test('puts the program, the units and the page where they belong', async () => {
    const root = join(staging, 'install')
    const { status, stdout, stderr } = await chio(['service', 'install', '--root', root, '--json'])
    expect(stderr).toBe('')
    expect(status).toBe(0)
    const { files } = JSON.parse(stdout) as { files: string[] }
    expect(files.filter(path => lstatSync(path, { throwIfNoEntry: false }) === undefined)).toEqual([])
    expect(readlinkSync(join(root, '/usr/local/bin/chio'))).toBe('/usr/lib/chio/dist/bin/chio.js')
    const units = files.filter(path => /\.(service|socket)$/.test(path))
    expect(units).toHaveLength(UNIT_NAMES.length)
    const version = spawnSync(process.execPath, [join(root, '/usr/lib/chio/dist/bin/chio.js'), '--version'], {
      encoding: 'utf8',
    })
    expect(version.stdout).toMatch(/^\d+\.\d+\.\d+\n$/)
    // As verify sees an installation: what is started stands where the unit says.
    for (const path of units)
      cpSync(path, join(staging, 'installed', path.slice(dirname(path).length)), {
        recursive: true,
      })
    expect(
      analyze('verify', ...units.map(path => join(staging, 'installed', path.slice(dirname(path).length)))),
    ).toEqual({ status: 0, said: '' })
  })

  test('repairs a program that others could change, renews its own links and keeps what is not its own', async () => {
    const root = join(staging, 'again')
    const bin = join(root, '/usr/local/bin')
    mkdirSync(bin, { recursive: true })
    symlinkSync('../../lib/chio/of/before', join(bin, 'chio-exec'))
    symlinkSync('/opt/other/chio', join(bin, 'chio'))
    const install = ['service', 'install', '--root', root]
    const first = await chio(install)
    expect(first.stderr).toBe('')
    expect(first.stdout.split('\n').filter(line => line.startsWith('Kept: '))).toEqual([
      `Kept: ${bin}/chio, which is not ours; our link would be to /usr/lib/chio/dist/bin/chio.js`,
    ])
    expect(first.stdout.slice(first.stdout.indexOf('Next'))).toBe(
      [
        `Next, on the machine whose / becomes ${root}, as root:`,
        'systemctl daemon-reload',
        'systemd-sysusers chio.conf',
        'systemd-tmpfiles --create chio.conf',
        'chio init --client USER, unless it was done',
        'systemctl enable --now chio-kerneld.service chio-brokerd.service\n',
      ].join('\n'),
    )
    expect(readlinkSync(join(bin, 'chio'))).toBe('/opt/other/chio')
    expect(readlinkSync(join(bin, 'chio-exec'))).toBe('/usr/lib/chio/native/build/Release/chio-exec')

    const folder = join(root, '/usr/lib/chio/dist/cli')
    chmodSync(folder, 0o777)
    writeFileSync(join(folder, 'planted.js'), '')
    rmSync(join(bin, 'chio'))
    writeFileSync(join(bin, 'chio'), 'a script of the administrator')
    const { status, stdout } = await chio([...install, '--json'])
    expect(status).toBe(0)
    expect(JSON.parse(stdout)).toMatchObject({ kept: [join(bin, 'chio')] })
    expect((JSON.parse(stdout) as { files: string[] }).files).not.toContain(join(bin, 'chio'))
    expect(readFileSync(join(bin, 'chio'), 'utf8')).toBe('a script of the administrator')
    expect(statSync(folder).mode & 0o7777).toBe(0o755)
    expect(existsSync(join(folder, 'planted.js'))).toBe(false)
  })
})
