/**
 * The cage of a user without root: the same walls, under its own uid. Root tries it as another uid.
 */
import { cpSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { packageRoot } from '../../native/index.js'
import { runWith } from '../support/descriptors.js'
import { isRoot, openFolder, testIdentity } from '../support/cage.js'

const folder = openFolder()
afterAll(() => folder.remove())

/** Compiled code that another uid can reach. */
function copyPackage(): void {
  for (const part of ['package.json', 'dist/cage', 'dist/native', 'dist/protocol']) {
    cpSync(join(packageRoot(), part), join(folder.path, part), { recursive: true })
  }
  const release = 'native/build/Release'
  mkdirSync(join(folder.path, release), { recursive: true })
  for (const part of ['chio_native.node', 'cage-init']) {
    cpSync(join(packageRoot(), release, part), join(folder.path, release, part))
  }
}

const SCRIPT = `
  import { openCage, cagePolicy, resolveTool } from './dist/cage/index.js'
  import { socketPair } from './dist/native/index.js'
  const body = "import os,socket\\nos.write(8,b'x')\\ntry: socket.socket()\\nexcept OSError as e: print(e.errno, os.getuid())"
  const [, stream] = socketPair('stream')
  const cage = await openCage(cagePolicy(resolveTool('python3', ['-c', body])))
  const armed = await cage.handOff(stream, Buffer.from([0, 0, 0, 1, 120]))
  const { exitCode, stdout, stderr } = await armed.go().finished
  const { uid, gid, descriptors } = armed.census
  console.log(JSON.stringify({
    uid, gid, exitCode, fds: descriptors.map(d => d.fd),
    stdout: Buffer.from(stdout).toString(), stderr: Buffer.from(stderr).toString(),
  }))
  const other = cagePolicy({ ...resolveTool('true'), identity: { uid: 61000, gid: 61000 } })
  console.log(await openCage(other).catch(error => error.failingCall))`

describe('a user without root', () => {
  beforeAll(copyPackage)

  test('runs tools in a cage under its own uid, and under no other', () => {
    const uid = testIdentity?.uid ?? process.getuid!()
    const gid = testIdentity?.gid ?? process.getgid!()
    const asUser = isRoot ? ['setpriv', `--reuid=${uid}`, `--regid=${gid}`, '--clear-groups'] : []
    const node = ['env', '-i', '-C', folder.path, process.execPath, '--input-type=module', '-e', SCRIPT]
    const [program, ...args] = [...asUser, ...node]
    const { stdout, stderr } = runWith(`/usr/bin/${program}`, args)
    const [run, other] = stdout.trim().split('\n')
    expect(stderr).toBe('')
    expect(JSON.parse(run!)).toEqual({
      uid,
      gid,
      exitCode: 0,
      fds: [0, 1, 2, 8, 12, 13, 255],
      stdout: `1 ${uid}\n`,
      stderr: '',
    })
    expect(other).toBe('cage uid')
  })
})
