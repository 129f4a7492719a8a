// What becomes of a command whose words nobody gets: a real full device, a real reader that is gone.
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { packageRoot } from '../../native/paths.js'

const PROGRAM = join(packageRoot(), 'dist', 'cli', 'chio.js')

function inShell(script: string) {
  const { stderr, stdout } = spawnSync(
    '/bin/bash',
    ['--norc', '-c', script, 'bash', process.execPath, PROGRAM],
    {
      encoding: 'utf8',
      env: { PATH: '/usr/bin:/bin' },
    },
  )
  return { stderr, stdout }
}

test.each(['--help', '--help --json', 'broker capacity --rate 1 --hold 1'])(
  '%s on a full device says that its words were lost, and does not end with 0',
  words => {
    const { stderr } = inShell(`"$1" "$2" ${words} >/dev/full; echo "code $?" >&2`)
    expect(stderr).toMatch(
      /^chio: standard output refused: expected .*, got ENOSPC; what was done stands\n.*\ncode 75\n$/,
    )
  },
)

test('a reader that went away is no fault of the command, and no stack', () => {
  const { stderr, stdout } = inShell('"$1" "$2" --help | true; echo "$PIPESTATUS"')
  expect({ stderr, stdout }).toEqual({ stderr: '', stdout: '0\n' })
})
