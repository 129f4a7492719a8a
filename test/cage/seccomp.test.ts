/**
 * The filters as policy: what is allowed and denied, on both architectures, and that no high bit changes it.
 */
import { createHash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { filterBytes, type Instruction } from '../../cage/bpf.js'
import { toolFilter, wardenFilter, type ExecPolicy, type FilterProfile } from '../../cage/seccomp.js'
import { callNames, callNumber, type Architecture, type CallName } from '../../cage/system-calls.js'
import { runFilter } from '../support/bpf-machine.js'

const AUDIT: Record<Architecture, number> = { x64: 0xc000003e, arm64: 0xc00000b7 }
const BOTH = ['x64', 'arm64'] as const

interface Rules {
  readonly profile: FilterProfile
  readonly exec: ExecPolicy
}

const CLOSED: Rules = { profile: 'native', exec: 'once' }

function ask(architecture: Architecture, name: CallName, args: bigint[] = [], rules: Rules = CLOSED): string {
  const number = callNumber(architecture, name)!
  return runFilter(toolFilter(architecture, rules), { number, audit: AUDIT[architecture], args })
}

const HIGH = 1n << 32n

const allow = (name: CallName, ...args: bigint[]) => ['allow', name, args] as const
const eperm = (name: CallName, ...args: bigint[]) => ['eperm', name, args] as const
const notify = (name: CallName, ...args: bigint[]) => ['notify', name, args] as const
const enosys = (name: CallName, ...args: bigint[]) => ['enosys', name, args] as const

const TABLE = [
  eperm('socket', 1n, 1n),
  eperm('socket', 40n, 1n),
  eperm('connect', 8n),
  eperm('accept4', 8n),
  eperm('socketpair', 1n, 1n),
  allow('sendto', 8n),
  allow('sendto', 8n + HIGH),
  eperm('sendto', 7n),
  eperm('sendmsg', 1n),
  eperm('recvmmsg', 9n),
  allow('recvfrom', 8n),
  allow('shutdown', 8n),
  eperm('shutdown', 1n),
  allow('setsockopt', 8n, 1n, 20n),
  allow('setsockopt', 8n, 1n, 21n),
  eperm('setsockopt', 8n, 1n, 26n),
  eperm('setsockopt', 8n, 6n, 20n),
  eperm('setsockopt', 9n, 1n, 20n),
  eperm('ioctl', 0n, 0x5412n),
  eperm('ioctl', 0n, 0x5412n + HIGH),
  eperm('ioctl', 0n, 0x541cn),
  eperm('ioctl', 0n, 0x541cn + 5n * HIGH),
  eperm('ioctl', 0n, 0x5423n),
  eperm('ioctl', 8n, 0x8912n),
  eperm('ioctl', 8n, 0x894cn),
  eperm('ioctl', 8n, 0x5452n),
  eperm('ioctl', 4n, 0xb702n),
  eperm('ioctl', 4n, 0xff0bn),
  allow('ioctl', 0n, 0x5401n),
  allow('ioctl', 8n, 0x541bn),
  allow('ioctl', 8n, 0x5421n + HIGH),
  eperm('sendto', 8n, 0n, 1n, 1n),
  eperm('sendto', 8n, 0n, 1n, 1n + HIGH),
  allow('sendto', 8n, 0n, 1n, 0x4000n),
  eperm('sendmsg', 8n, 0n, 0x41n),
  allow('sendmsg', 8n, 0n, 0x40n),
  eperm('sendmmsg', 8n, 0n, 1n, 1n),
  eperm('recvfrom', 8n, 0n, 1n, 1n),
  eperm('recvmsg', 8n, 0n, 1n),
  eperm('recvmmsg', 8n, 0n, 1n, 1n),
  allow('getsockopt', 8n, 1n, 3n),
  allow('getsockopt', 8n, 1n, 17n),
  eperm('getsockopt', 8n, 1n, 59n),
  eperm('getsockopt', 8n, 1n, 77n),
  eperm('getsockopt', 8n, 1n, 77n + HIGH),
  eperm('getsockopt', 8n, 6n, 3n),
  eperm('fcntl', 3n, 1024n),
  eperm('fcntl', 3n, 1026n + HIGH),
  allow('fcntl', 3n, 1033n),
  allow('fcntl', 8n, 1n),
  allow('mmap', 0n, 4096n, 3n, 0x22n),
  allow('mmap', 0n, 4096n, 1n, 0x01n),
  allow('mmap', 0n, 4096n, 3n, 0x2_0022n),
  eperm('mmap', 0n, 4096n, 3n, 0x21n),
  eperm('mmap', 0n, 4096n, 3n, 0x23n),
  eperm('mmap', 0n, 4096n, 3n, 0x21n + HIGH),
  eperm('mmap', 0n, 4096n, 3n, 0x122n),
  eperm('shmget'),
  eperm('semget'),
  eperm('msgget'),
  eperm('mq_open'),
  eperm('io_setup'),
  eperm('sync'),
  enosys('memfd_create'),
  enosys('memfd_secret'),
  enosys('inotify_init1'),
  enosys('cachestat'),
  allow('clone', 17n),
  allow('clone', 0x3d0f00n),
  eperm('clone', 0x10000000n),
  eperm('clone', 0x10000000n + HIGH),
  eperm('clone', 0x20000n | 17n),
  enosys('clone3'),
  eperm('prctl', 22n),
  eperm('prctl', 22n + HIGH),
  allow('prctl', 15n),
  eperm('seccomp', 1n),
  eperm('personality', 0x40000n),
  allow('personality', 0n),
  allow('personality', 0xffffffffn),
  eperm('execve'),
  eperm('execveat', 7n, 0n, 0n, 0n, 0x1000n),
  eperm('execveat', 255n, 0n, 0n, 0n, 0n),
  notify('execveat', 255n, 0n, 0n, 0n, 0x1000n),
  notify('execveat', 255n + HIGH, 0n, 0n, 0n, 0x1000n),
  eperm('ptrace'),
  eperm('process_vm_writev'),
  eperm('pidfd_getfd'),
  eperm('io_uring_setup'),
  eperm('keyctl'),
  eperm('bpf'),
  eperm('perf_event_open'),
  eperm('mount'),
  eperm('unshare'),
  eperm('setns'),
  eperm('userfaultfd'),
  eperm('kexec_load'),
  eperm('open_by_handle_at'),
  allow('write', 1n),
  allow('exit_group'),
] as const

describe.each(BOTH)('the tool filter on %s', architecture => {
  test.each(TABLE.map(row => ({ row, call: `${row[1]}(${row[2].join(', ')})` })))(
    'says $row.0 to $call',
    ({ row: [verdict, name, args] }) => {
      expect(ask(architecture, name, [...args])).toBe(verdict)
    },
  )

  test('gives node and python a stream pair alone', () => {
    for (const profile of ['node', 'python'] as const) {
      const rules: Rules = { profile, exec: 'once' }
      const flags = 0o2004000n
      expect(ask(architecture, 'socketpair', [1n, 1n | flags], rules)).toBe('allow')
      expect(ask(architecture, 'socketpair', [1n, 2n], rules)).toBe('eperm')
      expect(ask(architecture, 'socketpair', [1n, 5n | flags], rules)).toBe('eperm')
      expect(ask(architecture, 'socketpair', [16n, 1n], rules)).toBe('eperm')
      expect(ask(architecture, 'socket', [1n, 1n], rules)).toBe('eperm')
    }
  })

  test('lets a tool execute again only where policy says so', () => {
    const rules: Rules = { profile: 'native', exec: 'allowed' }
    expect(ask(architecture, 'execve', [], rules)).toBe('allow')
    expect(ask(architecture, 'execveat', [], rules)).toBe('allow')
  })

  test('kills another ABI, and answers a call of the future with ENOSYS', () => {
    const program = toolFilter(architecture, CLOSED)
    const audit = AUDIT[architecture]
    for (const other of [0x40000003, 0x40000028, AUDIT.x64, AUDIT.arm64].filter(value => value !== audit)) {
      expect(runFilter(program, { number: 1, audit: other })).toBe('kill')
    }
    expect(runFilter(program, { number: 466, audit })).toBe('allow')
    expect(runFilter(program, { number: 467, audit })).toBe('enosys')
    expect(runFilter(program, { number: 999, audit })).toBe('enosys')
  })

  test('never changes its answer for a high half of an argument that the kernel ignores', () => {
    const names = callNames(architecture)
    const word = fc.oneof(
      fc.integer({ min: 0, max: 600 }),
      fc.constantFrom(0x5412, 0x541c, 0x1000, 0x10000000, 22),
    )
    const words = fc.array(word, { minLength: 6, maxLength: 6 })
    const highs = fc.array(fc.integer({ min: 0, max: 2 ** 32 - 1 }), { minLength: 6, maxLength: 6 })
    fc.assert(
      fc.property(fc.constantFrom(...names), words, highs, (name, low, high) => {
        const plain = low.map(BigInt)
        const raised = low.map((value, index) => BigInt(value) + BigInt(high[index]!) * HIGH)
        expect(ask(architecture, name, raised)).toBe(ask(architecture, name, plain))
      }),
    )
  })

  test('fits the kernel, and its program is the same every time', () => {
    const program = toolFilter(architecture, CLOSED)
    expect(program.length).toBeLessThan(1_000)
    expect(filterBytes(program)).toEqual(filterBytes(toolFilter(architecture, CLOSED)))
    expect(filterBytes(program).length).toBe(program.length * 8)
  })

  test('leaves process 1 what it needs, and kills it for anything else', () => {
    const program = wardenFilter(architecture, 13)
    const warden = (name: CallName, ...args: bigint[]) =>
      runFilter(program, { number: callNumber(architecture, name)!, audit: AUDIT[architecture], args })
    expect(warden('wait4')).toBe('allow')
    expect(warden('exit_group')).toBe('allow')
    expect(warden('write', 13n)).toBe('allow')
    expect(warden('write', 1n)).toBe('kill')
    expect(warden('execve')).toBe('kill')
    expect(warden('socket')).toBe('kill')
    expect(runFilter(program, { number: 500, audit: AUDIT[architecture] })).toBe('kill')
  })
})

describe('both architectures', () => {
  const PROFILES = ['native', 'node', 'python'] as const
  const RULES = PROFILES.flatMap(profile =>
    (['once', 'allowed'] as const).map((exec): Rules => ({ profile, exec })),
  )
  const digestOf = (program: readonly Instruction[]): string =>
    `${program.length} ${createHash('sha256').update(filterBytes(program)).digest('hex')}`

  test('have exactly the filters of the golden digests, and the calls that one of them lacks', async () => {
    const filters = BOTH.flatMap(architecture => [
      ...RULES.map(
        rules =>
          `${architecture} ${rules.profile} ${rules.exec}: ${digestOf(toolFilter(architecture, rules))}`,
      ),
      `${architecture} warden: ${digestOf(wardenFilter(architecture, 13))}`,
    ])
    const lacks = BOTH.map((architecture, index) => {
      const there = callNames(BOTH[1 - index]!)
      return `${architecture} lacks ${there.filter(name => callNumber(architecture, name) === undefined).join(' ')}`
    })
    await expect([...filters, ...lacks, ''].join('\n')).toMatchFileSnapshot('golden/filters.txt')
  })

  test('answer alike to every call that both have', () => {
    const shared = callNames('arm64')
    const words = fc.array(fc.integer({ min: 0, max: 600 }), { minLength: 6, maxLength: 6 })
    fc.assert(
      fc.property(fc.constantFrom(...shared), words, fc.constantFrom(...RULES), (name, low, rules) => {
        const args = low.map(BigInt)
        expect(ask('arm64', name, args, rules)).toBe(ask('x64', name, args, rules))
      }),
    )
  })

  test('give node and python one filter', () => {
    for (const architecture of BOTH)
      for (const exec of ['once', 'allowed'] as const)
        expect(toolFilter(architecture, { profile: 'node', exec })).toEqual(
          toolFilter(architecture, { profile: 'python', exec }),
        )
  })
})

test('x32 calls are killed on x86_64', () => {
  const program = toolFilter('x64', CLOSED)
  expect(runFilter(program, { number: 0x40000000 + 41, audit: AUDIT.x64 })).toBe('kill')
  expect(runFilter(program, { number: 0xffffffff, audit: AUDIT.x64 })).toBe('kill')
})

describe('the call numbers', () => {
  // 451 and later are younger than some installed headers.
  const known = (text: string): Map<string, number> =>
    new Map([...text.matchAll(/#define __NR_(\w+) (\d+)/g)].map(match => [match[1]!, Number(match[2])]))

  test.each([
    ['x64', '/usr/include/x86_64-linux-gnu/asm/unistd_64.h'],
    ['arm64', '/usr/include/asm-generic/unistd.h'],
  ] as const)('of %s are the ones of the kernel headers', (architecture, path) => {
    if (!existsSync(path)) return
    const headers = known(readFileSync(path, 'utf8'))
    const compared = callNames(architecture).filter(name => headers.has(name))
    expect(compared.length).toBeGreaterThan(70)
    for (const name of compared)
      expect([name, callNumber(architecture, name)]).toEqual([name, headers.get(name)])
  })
})
