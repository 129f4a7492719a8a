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
