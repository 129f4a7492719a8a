/**
 * What a policy may say, at its bounds and one over.
 */
import { describe, expect, test } from 'vitest'
import { checkEnvironment } from '../../cage/environment.js'
import { cagePolicy, type CagePolicyChoices } from '../../cage/policy.js'

const tool = { path: '/usr/bin/true', argv: ['true'] }
const accepts = (choices: Partial<CagePolicyChoices>) =>
  expect(() => cagePolicy({ tool, ...choices })).not.toThrow()
const refuses = (choices: Partial<CagePolicyChoices>) =>
  expect(() => cagePolicy({ tool, ...choices })).toThrow(RangeError)

const argv = (...lengths: number[]) => ({
  tool: { path: '/usr/bin/true', argv: lengths.map(n => 'a'.repeat(n)) },
})

describe('the argument vector', () => {
  test('accepts 256 arguments and refuses 257, and none', () => {
    accepts(argv(...Array<number>(256).fill(1)))
    refuses(argv(...Array<number>(257).fill(1)))
    refuses(argv())
  })

  test('accepts 16,384 bytes in one and refuses 16,385', () => {
    accepts(argv(16_384))
    refuses(argv(16_385))
  })

  test('accepts 131,072 bytes in all and refuses one more', () => {
    accepts(argv(...Array<number>(8).fill(16_384)))
    refuses(argv(...Array<number>(8).fill(16_384), 1))
  })

  test('refuses a NUL', () => {
    refuses({ tool: { path: '/usr/bin/true', argv: ['a\0b'] } })
  })
})

describe('paths', () => {
  test.each(['relative', '', '/a/../b', '/a//b', '/a/./b', '/a/', '/a\0b'])(
    'refuses %j as the tool',
    path => {
      refuses({ tool: { path, argv: ['x'] } })
    },
  )

  test.each(['/', '/proc', '/proc/1/root', '/sys', '/dev', '/run', '/run/docker', '/var/run/dbus'])(
    'refuses to bind %s',
    source => {
      refuses({ readOnly: [{ source, at: '/data' }] })
    },
  )

  test.each(['/', '/proc/x', '/dev/x', '/run/chio', '/run/chio-cage/init', '/tmp/x', '/usr/lib'])(
    'refuses to lay a bind over %s',
    at => {
      refuses({ readOnly: [{ source: '/srv', at }] })
    },
  )

  test('accepts a folder of its own', () => {
    accepts({ readOnly: [{ source: '/srv/model', at: '/srv/model' }] })
  })
})

describe('limits', () => {
  const limits = { cpuSeconds: 1, dataBytes: 1 << 20, fileBytes: 4096, processes: 4, openFiles: 16 }

  test('accepts the smallest and refuses below', () => {
    accepts({ limits })
    for (const name of Object.keys(limits) as (keyof typeof limits)[]) {
      refuses({ limits: { ...limits, [name]: limits[name] - 1 } })
      refuses({ limits: { ...limits, [name]: Number.NaN } })
    }
  })

  test('keeps the slot of the executable out of the tool’s reach', () => {
    accepts({ limits: { ...limits, openFiles: 128 } })
    refuses({ limits: { ...limits, openFiles: 255 } })
  })

  test('accepts request frames up to the wire’s limit', () => {
    accepts({ requestBytes: 8 * 1024 * 1024 })
    refuses({ requestBytes: 8 * 1024 * 1024 + 1 })
    refuses({ requestBytes: 0 })
  })
})

describe('the environment', () => {
  const refusesName = (name: string) => expect(() => checkEnvironment({ [name]: 'x' })).toThrow(RangeError)

  test.each([
    'LD_PRELOAD',
    'BASH_ENV',
    'NODE_OPTIONS',
    'PYTHONPATH',
    'PYTHONSTARTUP',
    'PERL5LIB',
    'SSLKEYLOGFILE',
  ])('refuses the hook %s', refusesName)

  test.each(['GITHUB_TOKEN', 'AWS_SECRET_ACCESS_KEY', 'my_password', 'API_KEY', 'apikey', 'Authorization'])(
    'refuses %s, which names a secret',
    refusesName,
  )

  test.each(['NOTIFY_SOCKET', 'LISTEN_FDS', 'WATCHDOG_USEC', 'SSH_AUTH_SOCK', 'DBUS_SESSION_BUS_ADDRESS'])(
    'refuses the handle %s',
    refusesName,
  )

  test.each(['A=B', 'A B', '1A', '', 'É'])('refuses %j as a name', refusesName)

  test('accepts plain names, 16 KiB a value and 64 KiB in all', () => {
    expect(() => checkEnvironment({ LANG: 'C', MODEL_NAME: 'x', PYTHONUNBUFFERED: '1' })).not.toThrow()
    expect(() => checkEnvironment({ A: 'x'.repeat(16_384) })).not.toThrow()
    expect(() => checkEnvironment({ A: 'x'.repeat(16_385) })).toThrow(RangeError)
    const four = Object.fromEntries(['A', 'B', 'C', 'D'].map(name => [name, 'x'.repeat(16_383)]))
    expect(() => checkEnvironment(four)).not.toThrow()
    expect(() => checkEnvironment({ ...four, E: '' })).toThrow(RangeError)
  })
})
