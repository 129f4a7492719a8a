// What a newcomer meets first: a secret typed at a terminal, a provider on this machine, an installation or a
// credential that exists already.
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parseLocalProviders } from '../../cli/local-provider.js'
import { findState } from '../../cli/state.js'
import { packageRoot } from '../../native/paths.js'
import { testAuthority } from '../support/certificates.js'
import { documentOf } from '../support/chio.js'
import { codeOf } from '../support/descriptors.js'
import { SingleUser } from '../support/single-user.js'

let folder: string
let pem: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'chio-first-'))
  pem = join(folder, 'ca.pem')
  writeFileSync(pem, testAuthority().certPem)
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** Runs a command with a terminal as its standard input. */
const IN_TERMINAL = 'import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))'

test('a secret is not taken from a terminal, where it would be shown', () => {
  const chio = [process.execPath, join(packageRoot(), 'dist', 'bin', 'chio.js')]
  const provision = ['credential', 'provision', 'x', '--provider', 'p', '--placement', 'bearer']
  const ended = spawnSync('python3', ['-c', IN_TERMINAL, ...chio, ...provision, '--state', folder], {
    encoding: 'utf8',
    env: { PATH: process.env['PATH'] },
  })
  expect(ended.stdout).toContain(
    'standard input is a terminal, where it would be shown; use < file or a pipe',
  )
  expect(ended.status).toBe(2)
})

describe('a provider on this machine', () => {
  test('is named by host, port and authority, and reached at the loopback', () => {
    const [provider] = parseLocalProviders([`api.example.com:8443:${pem}`])
    expect(provider).toMatchObject({ host: 'api.example.com', port: 8443, caPem: readFileSync(pem, 'utf8') })
    expect(['127.0.0.1', '::1']).toContain(provider?.address)
  })

  test.each([
    '',
    'api.example.com',
    'api.example.com:8443',
    ':1:ca.pem',
    'a:70000:PEM',
    'A:1:PEM',
    'a:1:/absent',
  ])('%j is refused as usage', async text => {
    expect(await codeOf(() => parseLocalProviders([text.replace('PEM', pem)]))).toBe('usage')
  })

  test('stands in the configuration that init writes; a second init is told what to do', async () => {
    const user = new SingleUser()
    try {
      const made = await user.say([
        'init',
        '--single-user',
        '--local-provider',
        `a.example:8443:${visible(pem)}`,
      ])
      expect(made).toMatchObject({ status: 0 })
      const config = readFileSync(join(user.state, 'broker', 'config.json'), 'utf8')
      expect(JSON.parse(config)).toMatchObject({ localProviders: [{ host: 'a.example', port: 8443 }] })
      const again = await user.say(['init', '--single-user', '--json'])
      expect(again.status).toBe(1)
      expect(documentOf(again.stderr)).toMatchObject({ code: 'installation_exists' })
      expect(String(documentOf(again.stderr)['next'])).toContain('--state')
    } finally {
      await user.remove()
    }
  })
})

/** The installation may be another user's, who must be able to read the file. */
function visible(path: string): string {
  execFileSync('chmod', ['755', folder])
  return path
}

test('an empty CHIO_STATE names no folder', () => {
  expect(findState(undefined, { CHIO_STATE: '', XDG_STATE_HOME: folder })).toBe(join(folder, 'chio'))
})

describe('an init that finds no room', () => {
  // What fits into the longest file: not a key, no configuration, no store.
  test.each([
    [16, 'key file STATE/broker/keys/master.key refused: expected room on its disk, got EFBIG', null],
    [1_000, 'refused: expected write to be permitted and possible, got EFBIG', 'broker/config.json'],
    [4_096, 'SQLITE_', 'kernel/kernel.db'],
  ])('of %i bytes says so, and the next one what stands there', async (fileBytes, said, missing) => {
    const user = new SingleUser()
    try {
      const init = ['init', '--single-user', '--json']
      const failed = await user.say(init, { fileBytes })
      expect(failed.status).toBe(1)
      const { code, sentence } = documentOf(failed.stderr)
      expect(code).toBe('storage')
      expect(String(sentence).replaceAll(user.state, 'STATE')).toContain(said)
      expect(String(sentence)).toContain(user.state)
      const again = await user.say(init)
      expect(again.status).toBe(missing === null ? 0 : 1)
      if (missing === null) return
      expect(documentOf(again.stderr)).toMatchObject({
        code: 'installation_unfinished',
        sentence: expect.stringContaining(`a part of one, without ${join(user.state, missing)}`) as string,
      })
      rmSync(user.state, { recursive: true })
      expect(await user.say(init)).toMatchObject({ status: 0 })
    } finally {
      await user.remove()
    }
  })
})
