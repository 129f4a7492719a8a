import { describe, expect, test } from 'vitest'
import { takeServiceEnvironment } from '../../system/service-environment.js'
import { startChild } from '../support/compiled-child.js'

describe('what a service manager says', () => {
  test('is read once and taken out, so that no child inherits it', async () => {
    const environment = {
      NOTIFY_SOCKET: '/nowhere/notify',
      WATCHDOG_USEC: '30000000',
      LISTEN_PID: '1',
      LISTEN_FDS: '1',
      LISTEN_FDNAMES: 'broker',
      KEPT: 'yes',
    }
    const child = startChild(
      `const { takeServiceEnvironment } = await compiled('system/service-environment')
       const { spawnSync } = await import('node:child_process')
       const taken = takeServiceEnvironment()
       say({ taken, child: spawnSync('/usr/bin/env').stdout.toString() })`,
      [],
      { environment },
    )
    const said = (await child.next()) as { taken: object; child: string }
    expect(said.taken).toEqual({
      notifySocket: '/nowhere/notify',
      watchdogMs: 30_000,
      listen: { pid: '1', fds: '1' },
    })
    expect(said.child).toContain('KEPT=yes')
    expect(said.child).not.toMatch(/NOTIFY|WATCHDOG|LISTEN/)
    await child.ended()
  })

  test('is nothing where there is none, and an empty value is none', () => {
    const nothing = { notifySocket: null, watchdogMs: null, listen: null }
    expect(takeServiceEnvironment({})).toEqual(nothing)
    expect(takeServiceEnvironment({ NOTIFY_SOCKET: '', WATCHDOG_USEC: '', LISTEN_FDS: '' })).toEqual(nothing)
  })

  test('counts as a watchdog only for the process that it names', () => {
    const of = (pid: string) =>
      takeServiceEnvironment({ WATCHDOG_USEC: '2000', WATCHDOG_PID: pid }).watchdogMs
    expect(of(`${process.pid}`)).toBe(2)
    expect(of('1')).toBeNull()
  })

  test.each(['0', '-1', '12s', '999', '1e9'])('is refused as a watchdog interval of %s', text => {
    const environment = { WATCHDOG_USEC: text, NOTIFY_SOCKET: '/x' }
    expect(() => takeServiceEnvironment(environment)).toThrow(
      expect.objectContaining({ code: 'invalid_configuration' }),
    )
    expect(environment).toEqual({})
  })
})
