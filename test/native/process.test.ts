import { describe, expect, test } from 'vitest'
import { nodeScript, runNode, runNodeUnprivileged, runWith } from '../support/descriptors.js'

describe('forbidding dumps', () => {
  test('makes the process undumpable, with a core limit of one byte that stops files and pipes, verified from inside', () => {
    const run = runNode(`
      addon.forbidDumps()
      const { spawnSync } = require('node:child_process')
      const limits = spawnSync('/usr/bin/prlimit', ['--core', '--output', 'SOFT,HARD', '--noheadings'])
      console.log(limits.stdout.toString().trim().replace(/ +/, ' '))`)
    expect(run.stderr).toBe('')
    expect(run.stdout.trim()).toBe('1 1')
  })

  test('hides environment and descriptors from another process of the same uid', () => {
    const look = (harden: string) =>
      runNodeUnprivileged(`
        ${harden}
        const { spawnSync } = require('node:child_process')
        const folder = '/proc/' + process.pid
        const script = 'cat ' + folder + '/environ >/dev/null && ls ' + folder + '/fd >/dev/null && echo seen'
        console.log(spawnSync('/bin/sh', ['-c', script]).stdout.toString().trim() || 'denied')`).stdout.trim()
    expect(look('')).toBe('seen')
    expect(look('addon.forbidDumps()')).toBe('denied')
  })

  test('throws when the kernel does not do it', () => {
    for (const [inject, code] of [
      ['prctl:error=EPERM', 'EPERM'],
      ['prctl:retval=0:when=1', 'EPERM'],
      ['prlimit64:error=EPERM', 'EPERM'],
    ] as const) {
      const script = nodeScript(
        `try { addon.forbidDumps(); console.log('hardened') } catch (error) { console.log(error.code) }`,
      )
      const options = ['-f', '-qq', '-o', '/dev/null', '-e', `inject=${inject}`]
      const run = runWith('/usr/bin/strace', [...options, process.execPath, '-e', script])
      expect(run.stdout.trim()).toBe(code)
    }
  })
})

describe('the signal of the debugger', () => {
  /** Whether a debugger is open half a second after SIGUSR1. */
  const signalled = (harden: string) =>
    runNode(`
      process.debugPort = 0
      ${harden}
      process.kill(process.pid, 'SIGUSR1')
      setTimeout(() => {
        console.log(require('node:inspector').url() === undefined ? 'closed' : 'open')
        process.exit()
      }, 500)`).stdout.trim()

  test('does nothing, where it opens one in every other Node process', () => {
    expect(signalled('')).toBe('open')
    expect(signalled('addon.ignoreDebuggerSignal()')).toBe('closed')
  })

  test('is as ever in a program that is started', () => {
    const run = runNode(`
      addon.ignoreDebuggerSignal()
      const { spawnSync } = require('node:child_process')
      console.log(spawnSync('/bin/sh', ['-c', 'kill -USR1 $$; echo ignored']).signal)`)
    expect(run.stdout.trim()).toBe('SIGUSR1')
  })
})
