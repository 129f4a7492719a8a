// The demo as anybody runs it: every promise kept, and nothing of it left on the machine: no file, no process.
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { packageRoot } from '../../native/paths.js'
import { freeIds } from '../../selftest/free-ids.js'
import { copyProgram, reachableProgram } from '../../selftest/program-copy.js'
import { chio, type CommandOptions } from '../support/chio.js'
import { processes } from '../support/needles.js'
import { SKIP_REASONS } from '../support/skips.js'
import { testWhen } from '../support/when.js'

const isRoot = process.geteuid?.() === 0
const PROMISES = [
  'the issue was filed once',
  "the tool's descriptors were 0 1 2 8",
  'the tool could not open a socket',
  'the tool could not find the token',
  'the tool could not use descriptor 8 twice',
  'a second preparation was declined while the slot was held: conflict',
  'the receipt verifies against the pinned key',
]
const STEPS = ['reserve', 'authorize', 'register', 'prepare', 'start', 'handoff', 'outcome', 'finalize']

let place: string
let temporary: string
beforeEach(() => {
  place = realpathSync(mkdtempSync(join(tmpdir(), 'chio-demo-')))
  temporary = join(place, 'tmp')
  chmodSync(place, 0o755)
  mkdirSync(temporary)
  chmodSync(temporary, 0o1777)
})
afterEach(() => rmSync(place, { recursive: true, force: true }))

async function demo(options: CommandOptions = {}): Promise<string> {
  const environment = { TMPDIR: temporary }
  const { status, stdout, stderr } = await chio([], { program: 'demo', environment, ...options })
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
  const told = stdout.split('\n')
  for (const promise of PROMISES) {
    expect([promise, told.filter(line => line.startsWith('kept ') && line.includes(promise)).length]).toEqual(
      [promise, 1],
    )
  }
  expect(stdout).not.toContain('BROKEN')
  for (const step of STEPS) expect(stdout).toMatch(new RegExp(`\\d ms +${step} +[\\d.]+ ms`))
  expect(readdirSync(temporary)).toEqual([])
  expect(processes().filter(({ command }) => command.includes(temporary))).toEqual([])
  return stdout
}

describe('the demo', () => {
  test('keeps every promise and leaves nothing', async () => {
    const told = await demo()
    const [kernel, broker] = [/kerneld pid \d+ uid (\d+)/, /brokerd pid \d+ uid (\d+)/].map(uid =>
      Number(uid.exec(told)?.[1]),
    )
    if (isRoot) expect(new Set([0, kernel, broker]).size).toBe(3)
    else expect([kernel, broker]).toEqual([process.geteuid?.(), process.geteuid?.()])
  })

  testWhen(isRoot, SKIP_REASONS.needsRoot, 'keeps every promise as an unprivileged user', async () => {
    const { root, copied } = reachableProgram(place)
    if (copied) cpSync(join(packageRoot(), 'examples'), join(root, 'examples'), { recursive: true })
    const [uid = 0] = freeIds(1)
    const told = await demo({ uid, root })
    expect(told).toContain(`in a cage under uid ${uid}`)
  })

  testWhen(
    isRoot,
    SKIP_REASONS.needsRoot,
    'runs from a folder that others cannot enter, and says so',
    async () => {
      const hidden = join(place, 'hidden')
      copyProgram(packageRoot(), hidden)
      for (const part of ['examples', 'package-lock.json']) {
        cpSync(join(packageRoot(), part), join(hidden, part), { recursive: true })
      }
      chmodSync(hidden, 0o700)
      const told = await demo({ root: hidden })
      expect(told).toContain('program    copied to a folder that the other uids can reach')
    },
  )
})
