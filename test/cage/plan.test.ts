/**
 * Policy → plan, byte for byte: the options as a readable golden file, the plan of cage-init by its digest and parts.
 */
import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { planCage, requestFolderBytes, type LaunchGrounds } from '../../cage/plan.js'
import { cagePolicy, type CagePolicyChoices } from '../../cage/policy.js'

const view = {
  links: [
    { at: '/bin', target: 'usr/bin' },
    { at: '/lib', target: 'usr/lib' },
    { at: '/lib64', target: 'usr/lib64' },
  ],
  folders: ['/sbin'],
}

const grounds: LaunchGrounds = {
  architecture: 'x64',
  view,
  placements: [
    { at: '/run/chio-cage/init', from: { path: '/opt/chio/cage-init' } },
    { at: '/run/chio-cage/tool/hidden', from: { descriptor: 14 } },
  ],
}

const CHOICES: Record<string, CagePolicyChoices> = {
  native: { tool: { path: '/opt/own/hidden', argv: ['hidden', '--once'] } },
  python: {
    tool: { path: '/usr/bin/python3', argv: ['python3', '/srv/model/run.py'] },
    profile: 'python',
    exec: 'allowed',
    readOnly: [{ source: '/srv/model-v2', at: '/srv/model' }],
    environment: { LANG: 'C.UTF-8' },
    directory: '/srv/model',
    scratchBytes: 65_536,
    requestBytes: 524_288,
  },
}

/** One option with its values a line. */
function shown(options: readonly string[]): string {
  return options.join('\n').replaceAll(/\n(?!--)/g, ' ') + '\n'
}

describe.each(Object.keys(CHOICES))('the plan of a %s tool', name => {
  const plan = planCage(cagePolicy(CHOICES[name]!), grounds)

  test('has exactly the options of its golden file', async () => {
    await expect(shown(plan.options)).toMatchFileSnapshot(`golden/${name}.options.txt`)
  })

  test('starts cage-init with its three descriptors, all at 10 or above', () => {
    expect(plan.command).toEqual(['/run/chio-cage/init', '11', '12', '13'])
  })

  test('has exactly the plan bytes of its golden digest', async () => {
    const digest = createHash('sha256').update(plan.initPlan).digest('hex')
    await expect(`${plan.initPlan.length} ${digest}\n`).toMatchFileSnapshot(`golden/${name}.plan.txt`)
  })

  test('is the same every time', () => {
    expect(planCage(cagePolicy(CHOICES[name]!), grounds)).toEqual(plan)
  })
})

describe('every plan', () => {
  const { options } = planCage(cagePolicy(CHOICES['native']!), grounds)
  const text = options.join(' ')

  test('shares no namespace, keeps no capability, no variable and no terminal', () => {
    for (const wall of [
      '--unshare-all',
      '--unshare-user',
      '--disable-userns',
      '--clearenv',
      '--new-session',
    ]) {
      expect(options).toContain(wall)
    }
    expect(text).toContain('--cap-drop ALL')
    expect(text).not.toMatch(/--share-net|--cap-add|--setenv|--seccomp|--bind |--dev \//)
  })

  test('makes process 1 its own and ends with its launcher', () => {
    expect(options).toContain('--as-pid-1')
    expect(options).toContain('--die-with-parent')
  })

  test('mounts a new /proc and never the host’s', () => {
    expect(text).toContain('--proc /proc')
    expect(text).not.toMatch(/bind\S* \/proc/)
  })

  test('sizes every writable place and makes the root read-only last', () => {
    const tmpfs = options.flatMap((option, index) =>
      option === '--tmpfs' ? [options.slice(index - 2, index)] : [],
    )
    expect(tmpfs.length).toBe(3)
    for (const [size, bytes] of tmpfs) expect([size, Number(bytes) > 0]).toEqual(['--size', true])
    expect(options.slice(-4)).toEqual(['--remount-ro', '/', '--chdir', '/'])
  })

  test('has room for frame and body of the largest request', () => {
    for (const bytes of [1, 4092, 4093, 524_288, 8 * 1024 * 1024]) {
      expect(requestFolderBytes(bytes)).toBeGreaterThanOrEqual(2 * (bytes + 4))
    }
  })
})
