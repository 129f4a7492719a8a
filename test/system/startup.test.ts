import { describe, expect, test } from 'vitest'
import {
  allowedEnvironment,
  assertEnvironment,
  assertExecArgv,
  hostileVariables,
} from '../../system/environment.js'
import { startChild } from '../support/compiled-child.js'

const HOSTILE = [
  'NODE_OPTIONS',
  'NODE_TLS_REJECT_UNAUTHORIZED',
  'NODE_EXTRA_CA_CERTS',
  'SSLKEYLOGFILE',
  'SSL_CERT_FILE',
  'SSL_CERT_DIR',
  'HTTPS_PROXY',
  'https_proxy',
  'Http_Proxy',
  'ALL_PROXY',
  'no_proxy',
  'LD_PRELOAD',
  'LD_LIBRARY_PATH',
  'LD_AUDIT',
  'OPENSSL_CONF',
  'NODE_PATH',
  'NODE_DEBUG',
  'NODE_COMPILE_CACHE',
  'NODE_CHANNEL_FD',
  'NODE_ICU_DATA',
  'NODE_ENV_FILE',
  'NODE_SWITCH_OF_A_LATER_RELEASE',
  'LD_DEBUG_OUTPUT',
  'OPENSSL_ia32cap',
  'GCONV_PATH',
  'GLIBC_TUNABLES',
  'HOSTALIASES',
  'LOCALDOMAIN',
  'RES_OPTIONS',
  'RESOLV_HOST_CONF',
  'MALLOC_TRACE',
]

describe('the environment of a daemon', () => {
  test.each(HOSTILE)('is refused with %s, also when it is empty, naming it and not its value', name => {
    expect(() => assertEnvironment({ PATH: '/bin', [name]: '' })).toThrow(`unset ${name}`)
    expect(() => assertEnvironment({ [name]: 'canary' })).toThrow(
      expect.not.stringContaining('canary') as never,
    )
    expect(() => assertEnvironment({ [name]: 'x' })).toThrow(
      expect.objectContaining({ code: 'hostile_environment' }) as never,
    )
  })

  test('is accepted with ordinary variables, PROXYMAN and NODE_ENV among them', () => {
    assertEnvironment({
      PATH: '/bin',
      HOME: '/root',
      LANG: 'C',
      NODE_ENV: 'production',
      NODE_NO_WARNINGS: '1',
      NODE: '/usr/bin/node',
      TMPDIR: '/tmp',
      TZ: 'UTC',
      PROXYMAN: '1',
      CHIO_STATE: '/x',
    })
  })

  test('lists every hostile variable for a command that only warns', () => {
    expect(hostileVariables({ LD_PRELOAD: 'x', A: '1', HTTP_PROXY: 'y' })).toEqual([
      'HTTP_PROXY',
      'LD_PRELOAD',
    ])
  })

  test('that we hand to a daemon holds a fixed path, the locale and what was named', () => {
    process.env['CANARY_TOKEN'] = 'secret'
    const environment = allowedEnvironment({ CHIO_STATE: '/state' })
    delete process.env['CANARY_TOKEN']
    expect(
      Object.keys(environment).every(name =>
        ['PATH', 'HOME', 'LANG', 'LC_ALL', 'TZ', 'CHIO_STATE'].includes(name),
      ),
    ).toBe(true)
    expect(environment).toMatchObject({
      CHIO_STATE: '/state',
      PATH: expect.stringContaining('/usr/bin') as string,
    })
    assertEnvironment(environment)
    expect(() => allowedEnvironment({ NODE_OPTIONS: '' })).toThrow(/NODE_OPTIONS/)
  })
})

describe('options of Node', () => {
  test.each([
    '--inspect',
    '--require=/tmp/x.js',
    '-r',
    '--import=x',
    '--use-openssl-ca',
    '--tls-min-v1.0',
    '--insecure-http-parser',
    '-e',
    '--loader=x',
  ])('%s is refused and named without its value', option => {
    expect(() => assertExecArgv(['--enable-source-maps', option])).toThrow(option.split('=')[0])
    expect(() => assertExecArgv([option])).toThrow(expect.not.stringContaining('/tmp') as never)
  })

  test('that change nothing of what is trusted are accepted', () => {
    assertExecArgv(['--enable-source-maps', '--no-warnings', '--max-old-space-size=256'])
  })
})

const START = `
const { startupHygiene } = await compiled('system/startup')
try { startupHygiene({ execArgv: [], keepDescriptors: args.map(Number) }); say({ ok: true, umask: process.umask() }) }
catch (error) { say({ code: error.code, message: error.message }) }
process.stdin.on('end', () => {}).resume()`

describe('start-up hygiene of a process', () => {
  test('refuses a hostile variable of its own', async () => {
    const child = startChild(START, [], { environment: { SSL_CERT_FILE: '/dev/null' } })
    expect(await child.next()).toMatchObject({
      code: 'hostile_environment',
      message: expect.stringContaining('SSL_CERT_FILE') as string,
    })
    await child.kill()
  })

  test('refuses foreign options of its own', async () => {
    const child = startChild(
      `const { startupHygiene } = await compiled('system/startup')
       try { startupHygiene(); say({}) } catch (error) { say({ code: error.code }) }`,
    )
    expect(await child.next()).toEqual({ code: 'hostile_environment' })
    await child.ended()
  })

  test('opens no debugger at SIGUSR1, and refuses to start where one is open', async () => {
    const child = startChild(
      `const { startupHygiene } = await compiled('system/startup')
       const inspector = await import('node:inspector')
       process.debugPort = 0
       startupHygiene({ execArgv: [] })
       process.kill(process.pid, 'SIGUSR1')
       await new Promise(resolve => setTimeout(resolve, 500))
       say({ open: inspector.url() !== undefined })
       inspector.open(0)
       try { startupHygiene({ execArgv: [] }); say({}) } catch (error) { say({ code: error.code, message: error.message }) }
       inspector.close()`,
    )
    expect(await child.next()).toEqual({ open: false })
    expect(await child.next()).toEqual({
      code: 'hostile_environment',
      message: expect.stringContaining('expected no open debugger, got one') as string,
    })
    await child.ended()
  })

  test('forbids dumps, so that the same uid cannot read its environment, and sets a private umask', async () => {
    const child = startChild(START)
    expect(await child.next()).toEqual({ ok: true, umask: 0o077 })
    const core = startChild(
      `
      const { readFileSync } = await import('node:fs')
      say({ owner: (await import('node:fs')).statSync('/proc/' + args[0] + '/environ').uid, core: readFileSync('/proc/' + args[0] + '/limits', 'utf8').match(/core file size +(\\S+)/)[1] })`,
      [String(child.process.pid)],
    )
    expect(await core.next()).toMatchObject({ owner: 0 })
    await core.ended()
    await child.kill()
  })

  test('keeps inherited descriptors from its own children, also above the gap where Node stops looking', async () => {
    const list = 'for fd in 12 20 40; do [ -e /proc/$$/fd/$fd ] && echo $fd; done'
    const child = startChild(
      `const { startupHygiene } = await compiled('system/startup')
       const { spawnSync } = await import('node:child_process')
       const listed = () => spawnSync('/bin/sh', ['-c', args[0]], { stdio: ['ignore', 'pipe', 'inherit'] }).stdout.toString().trim()
       say({ before: listed() })
       startupHygiene({ execArgv: [], keepDescriptors: [20] })
       say({ after: listed() })`,
      [list],
      { wrapper: ['bash', '--norc', '-c', 'exec 12</dev/null 20</dev/null 40</dev/null; exec "$@"', 'bash'] },
    )
    expect(await child.next()).toEqual({ before: '20\n40' })
    expect(await child.next()).toEqual({ after: '20' })
    await child.ended()
  })
})
