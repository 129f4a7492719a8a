/**
 * What the tool may ask of the kernel, as a table: a C program asks inside a real cage and prints the answers.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { CagePolicyChoices } from '../../cage/policy.js'
import { buildTool, openFolder, runCaged } from '../support/cage.js'

const folder = openFolder()
afterAll(() => folder.remove())

async function ask(choices: Partial<CagePolicyChoices>): Promise<Record<string, string>> {
  const path = buildTool('probe', folder.path)
  const { stdout, finished } = await runCaged({ tool: { path, argv: ['probe'] }, ...choices })
  expect(finished).toMatchObject({ exitCode: 0, signal: null })
  return Object.fromEntries(
    stdout
      .trim()
      .split('\n')
      .map(line => line.split(' ') as [string, string]),
  )
}

const FAMILIES = ['unix', 'inet', 'inet6', 'netlink', 'vsock', 'packet', 'alg']

const REFUSED_BY_FILTER = [
  FAMILIES.map(family => `socket-${family}`),
  ['socketpair-dgram', 'socketpair-seqpacket', 'connect-8', 'bind-8', 'listen-8', 'accept-8'],
  ['sendmsg-1', 'send-1', 'send-high-1', 'shutdown-1', 'setsockopt-8', 'io_uring'],
  ['ptrace', 'process_vm_readv', 'pidfd_getfd', 'keyctl', 'bpf', 'perf', 'userfaultfd'],
  ['unshare', 'unshare-time', 'setns', 'clone-newuser', 'clone-high-newnet'],
  ['mount', 'umount', 'open_tree', 'open_by_handle_at', 'seccomp', 'prctl-seccomp'],
  ['tiocsti', 'tiocsti-high', 'tioclinux', 'tioclinux-high'],
].flat()

describe('a tool in the cage', () => {
  let answers: Record<string, string>

  beforeAll(async () => {
    answers = await ask({})
  })

  test.each(REFUSED_BY_FILTER)('is refused %s', name => {
    expect(answers[name]).toBe('EPERM')
  })

  test.each(['clone3', 'unknown'])('finds no %s, as on an older kernel', name => {
    expect(answers[name]).toBe('ENOSYS')
  })

  test('gets no socket pair in the native profile', () => {
    expect(answers['socketpair-stream']).toBe('EPERM')
  })

  test('cannot reach into process 1, which has no filter of its kind', () => {
    expect(answers).toMatchObject({
      'mem-1': 'EACCES',
      'environ-1': 'EACCES',
      'fd-1': 'EACCES',
      'root-1': 'EACCES',
    })
  })

  test('cannot execute anything again, by any way of naming it', () => {
    expect(answers).toMatchObject({
      'descriptor-255': 'EINVAL',
      execve: 'EPERM',
      'execveat-path': 'EPERM',
      'execveat-255': 'ENOSYS',
      'execveat-255-absolute': 'ENOSYS',
      'execveat-255-high': 'ENOSYS',
    })
  })

  test('has no terminal', () => {
    expect(answers).toMatchObject({ tty: 'ENOENT', ptmx: 'ENOENT' })
  })

  test('writes to its scratch folder alone, and sees nothing of the host', () => {
    expect(answers).toMatchObject({
      'write-root': 'EROFS',
      'write-usr': 'EROFS',
      'write-dev': 'EROFS',
      'write-tmp': 'ok',
      passwd: 'ENOENT',
      home: 'ENOENT',
      fork: 'ok',
    })
  })
})

describe('the profiles', () => {
  test.each(['node', 'python'] as const)('%s adds the stream pair, and nothing else', async profile => {
    const answers = await ask({ profile })
    expect(answers['socketpair-stream']).toBe('ok')
    for (const name of REFUSED_BY_FILTER) expect([name, answers[name]]).toEqual([name, 'EPERM'])
  })
})
